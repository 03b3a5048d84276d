// The division of a data set into streams, which several workers read side by side.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "worker/data/format/data_set.h"

namespace cistern {

// A stream is a range of files or, where there are fewer files than wanted streams, of samples
// between places to which a reader can seek: any sample of Raw files, the row groups of Parquet.
// The streams together are the data set, in its order. The division is a function of the data and
// the options only.
//
// Threads: one at a time.
class DataStreams {
 public:
  // Divides the data set into `wanted` streams, or fewer: at most one per file or place; at least
  // one, and as many in every epoch. Reads the file list, and footers of Parquet files where it
  // divides files. Errors: as OpenDataSet.
  static absl::StatusOr<DataStreams> Divide(const DataSetOptions& options, uint32_t wanted);

  uint32_t size() const { return streams_; }
  // Opens a stream of an epoch. It has at most the samples of its range, and may be empty.
  absl::StatusOr<std::unique_ptr<SampleReader>> Open(uint32_t epoch, uint32_t stream) const;

 private:
  explicit DataStreams(const DataSetOptions& options) : options_(options) {}

  absl::StatusOr<std::vector<std::string>> Files(uint32_t epoch) const;

  DataSetOptions options_;
  uint32_t streams_ = 1;
  bool by_files_ = true;
  std::vector<std::string> paths_;  // unless the order of the files changes with the epoch
};

}  // namespace cistern
