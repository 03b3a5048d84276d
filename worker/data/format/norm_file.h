// Reads one Norm file record by record and checks every field.
#pragma once

#include <memory>
#include <string>

#include "common/base/status.h"
#include "worker/data/format/byte_stream.h"
#include "worker/data/format/norm_begin.h"
#include "worker/data/format/norm_format.h"
#include "worker/data/format/sample_reader.h"

namespace cistern::data {

// Threads: one at a time.
class NormFile {
 public:
  // Opens `path` and checks its header against options.check and options.shape; ignores
  // options.source. Errors: as OpenNorm.
  static absl::StatusOr<std::unique_ptr<NormFile>> Open(const std::string& path,
                                                        const NormOptions& options);
  // The same for bytes that come from somewhere else.
  static absl::StatusOr<std::unique_ptr<NormFile>> Over(std::unique_ptr<ByteStream> stream,
                                                        const NormOptions& options);

  // Appends up to `max_samples` samples to `block`; 0 at the end of the file. kDataLoss if bytes
  // follow the last record. Other errors: as SampleReader::Read.
  absl::StatusOr<size_t> Read(size_t max_samples, SampleBlock* block);

  // Skips up to `max_samples` samples and returns how many; fewer only at the end of the file.
  // Reads only the lengths in each record, from the nearest of options.places on. Errors: those of
  // Read about lengths. scratch: as for SampleReader::Skip.
  absl::StatusOr<uint64_t> Skip(uint64_t max_samples, SampleBlock* scratch);

  const NormHeader& header() const { return header_; }

 private:
  enum class Step { kDone, kNeedMore, kBad };

  NormFile(std::unique_ptr<ByteStream> stream, const NormOptions& options);
  absl::Status CheckHeader(const NormBegin& begin) const;

  // Appends one record to `block`, or on error nothing.
  absl::Status ReadRecord(SampleBlock* block);
  // Steps over up to `records` records, as Skip does.
  absl::Status StepOver(uint64_t records, SampleBlock* scratch);
  // Moves to the nearest known place that is after record_ and not after `target`.
  absl::Status SeekTowards(uint64_t target);
  // The size of the record at the front of the stream, from its lengths; 0 if it is not available
  // as a whole, or if a length is too large.
  size_t AvailableRecord() const;
  template <bool kWide>
  size_t PlainSize(const char* begin, size_t available) const;
  absl::Status ReadPlain(SampleBlock* block);
  absl::Status ReadSummed(SampleBlock* block);
  // Parses the sample at `begin` and sets `next` to the byte after it. kNeedMore: the bytes end
  // inside the sample, in the part place_; it needs at least wanted_ bytes. kBad: see bad_.
  template <bool kWide>
  Step ParseSample(const char* begin, const char* end, SampleBlock* block, const char** next);
  template <bool kWide>
  Step ParseColumn(size_t input, const char** place, const char* end, SparseColumn* column);
  template <bool kWide>
  Step Refuse(size_t input, size_t slot, int32_t nnz, uint32_t left);
  Step RefuseKey(size_t input, size_t slot, Key key);
  void CutBack(size_t size, const std::vector<size_t>& keys, SampleBlock* block) const;

  absl::Status CheckEnd();
  // Prefixes `status` with file and record, and appends a hint if the bytes are valid with keys of
  // the other width.
  absl::Status Explain(const absl::Status& status) const;
  std::string WidthHint() const;

  std::unique_ptr<ByteStream> stream_;
  NormOptions options_;
  NormHeader header_;
  size_t slot_num_ = 0;
  size_t record_min_ = 0, record_max_ = 0;  // bounds of a sample's size in bytes
  int64_t record_ = 0;                      // the next record, from 0
  bool hints_ = true;
  // ParseSample for the width of the keys.
  Step (NormFile::*const parse_)(const char*, const char*, SampleBlock*, const char**);

  const char* parse_begin_ = nullptr;
  size_t wanted_ = 0;
  std::string place_;
  absl::Status bad_;
  std::vector<size_t> keys_before_;
};

}  // namespace cistern::data
