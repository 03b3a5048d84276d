// Goes over a data set batch by batch, as often as it is asked to.
#pragma once

#include <functional>
#include <memory>

#include "common/status.h"
#include "worker/data/sample_reader.h"

namespace cistern {

// The samples of one batch.
struct BatchSamples {
  SampleBlock block;
  uint32_t epoch = 0;       // of the first sample
  bool ends_epoch = false;  // holds the last sample of an epoch
};

// Reads one sample ahead, so that a batch knows whether its epoch goes on.
//
// Threads: one at a time.
class SampleCursor {
 public:
  using OpenReader = std::function<absl::StatusOr<std::unique_ptr<SampleReader>>()>;
  struct Options {
    size_t batchsize = 1;
    size_t inputs = 0;
    uint32_t epochs = 1;  // 0: without end
    // A batch that an epoch cannot fill takes its missing samples from the next.
    bool wrap = false;
  };
  SampleCursor(const Options& options, OpenReader open)
      : options_(options), open_(std::move(open)) {}

  // Fills `out` with the next batch; false when there is none. kDataLoss if an epoch has no sample.
  absl::StatusOr<bool> Next(BatchSamples* out);

 private:
  // Opens the next epoch unless the batch in `out` is to do without it; false then.
  absl::StatusOr<bool> OpenEpoch(const BatchSamples& out);

  const Options options_;
  const OpenReader open_;
  std::unique_ptr<SampleReader> reader_;  // of epoch opened_ - 1; null between epochs
  uint32_t opened_ = 0;
  uint64_t epoch_samples_ = 0;  // read by reader_
  SampleBlock ahead_;           // at most one sample, of reader_
};

}  // namespace cistern
