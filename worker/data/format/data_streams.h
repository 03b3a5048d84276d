// The division of a data set into streams, which several workers read side by side.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "worker/data/format/data_set.h"
#include "worker/data/format/record_places.h"

namespace cistern::data {

// Stream s of S is files s, s + S, s + 2 S, ... of an epoch, so that all streams together go
// through the files in their order. Fewer files than wanted streams are divided inside: stream s is
// then samples [N s / S, N (s + 1) / S) of the N samples of the data set. The division is a
// function of the number of files, the number of samples and the options. The format of the files,
// their compression and where they are do not matter.
//
// A stream that begins inside a file steps over the samples before it. Where that file is not
// compressed, a run steps over it once, and finds the place again later. Raw files are addressed.
//
// Threads: Open may be called from any thread.
class DataStreams {
 public:
  // Divides the data set into `wanted` streams, or fewer: at most one per file or, where files are
  // divided, per sample; at least one, and as many in every epoch. Reads the file list and, where
  // it divides files, counts their samples: reads their headers or footers, and tar shards that no
  // manifest lists. Errors: as OpenDataSet.
  //
  // With bad files left out, the number of samples is known only after they were read, so that
  // files are not divided. With num_samples too, there is one stream.
  static absl::StatusOr<DataStreams> Divide(const DataSetOptions& options, uint32_t wanted);

  uint32_t size() const { return streams_; }
  // Opens a stream of an epoch. It has at most the samples of its range, and may be empty.
  absl::StatusOr<std::unique_ptr<SampleReader>> Open(uint32_t epoch, uint32_t stream) const;

 private:
  explicit DataStreams(const DataSetOptions& options) : options_(options) {}

  absl::StatusOr<std::vector<std::string>> Files(uint32_t epoch) const;
  absl::StatusOr<std::unique_ptr<SampleReader>> OpenRange(const std::vector<std::string>& paths,
                                                          uint32_t stream) const;

  DataSetOptions options_;
  uint32_t streams_ = 1;
  std::vector<std::string> paths_;  // unless the order of the files changes with the epoch
  // Of streams that are ranges of samples; null: they are files. Shared by copies of this object.
  std::shared_ptr<RecordPlaces> places_;
  uint64_t samples_ = 0;  // of the data set, with places_
};

}  // namespace cistern::data
