// Reads a data set once, file by file, in order.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "worker/data/format/record_places.h"
#include "worker/data/format/sample_block.h"

namespace cistern::data {

// Threads: one at a time.
class SampleReader {
 public:
  virtual ~SampleReader() = default;
  // Appends up to `max_samples` samples to `block` and returns how many; 0 at the end of the data.
  // kDataLoss or kOutOfRange names file, record (from 0), slot and key; no part of a bad record is
  // appended.
  virtual absl::StatusOr<size_t> Read(size_t max_samples, SampleBlock* block) = 0;
  // Skips up to `max_samples` samples and returns how many; fewer only at the end of the data.
  // scratch: a block as for Read; its samples are discarded. The default implementation reads the
  // samples. A reader that knows sample offsets skips without reading, and does not check what it
  // skips.
  virtual absl::StatusOr<uint64_t> Skip(uint64_t max_samples, SampleBlock* scratch);
  // The number of samples from the start of the data, if known without reading them.
  virtual std::optional<uint64_t> Samples() const { return std::nullopt; }
  // Location of sample `sample` (from 0) of this reader, for messages: "a.norm: record 3".
  virtual std::string PlaceOf(uint64_t sample) const { return absl::StrCat("sample ", sample); }
};

// The number of samples of a file that was not opened yet. Remote files are opened when they are
// read, because a data set can have thousands.
inline constexpr uint64_t kSamplesUnknown = ~uint64_t{0};

// Implements PlaceOf for a list of files that have `path` and `samples`.
template <typename Files>
std::string PlaceAmong(const Files& files, uint64_t sample) {
  for (const auto& file : files) {
    if (sample < file.samples) return absl::StrCat(file.path, ": record ", sample);
    sample -= file.samples;
  }
  return "after the last file";
}

// Implements Samples likewise.
template <typename Files>
std::optional<uint64_t> SamplesOf(const Files& files) {
  uint64_t samples = 0;
  for (const auto& file : files) {
    if (file.samples == kSamplesUnknown) return std::nullopt;
    samples += file.samples;
  }
  return samples;
}

// What the readers of a data set have done. Skipped samples do not count, except where they must be
// read to know what follows.
//
// Threads: any thread.
struct ReadCounts {
  // Bytes of the samples that were decoded and checked: records of Norm and Raw, .json members of
  // Tar, values of Parquet in their types.
  std::atomic<uint64_t> decoded_bytes = 0;
};

enum class NormCheck { kNone, kSum };

struct NormOptions {
  std::string source;  // file list (HugeCTR: line 1 = N, then N paths), or one .norm/.data file
  NormCheck check = NormCheck::kNone;
  bool wide_keys = false;  // I64: 8-byte keys; else 4
  SampleShape shape;
  // By input: the first key of each slot, then the end of the last slot's range. An input without
  // them (empty or absent) accepts any key.
  std::vector<std::vector<Key>> slot_starts;
  ReadCounts* counts = nullptr;  // outlives the reader; null: not counted
  // Skip begins at the nearest place that is known, and adds where it ends; outlives the reader;
  // null: it steps over all records.
  RecordPlaces* places = nullptr;
};

// Opens HugeCTR Norm files (reference: section 1.7). Reads the list and checks the headers of all
// local files at once; Read streams the samples through a bounded buffer.
//
// kInvalidArgument: a header does not match `shape` (the message names both shapes); kNotFound: no
// such file; kDataLoss: not a Norm file.
absl::StatusOr<std::unique_ptr<SampleReader>> OpenNorm(const NormOptions& options);
// The same for these data files, in this order; ignores options.source.
absl::StatusOr<std::unique_ptr<SampleReader>> OpenNorm(const NormOptions& options,
                                                       const std::vector<std::string>& paths);

}  // namespace cistern::data
