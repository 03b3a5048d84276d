// Goes over a data set batch by batch, as often as it is asked to.
#pragma once

#include <functional>
#include <memory>

#include "common/base/status.h"
#include "worker/data/format/sample_reader.h"
#include "worker/data/source/pass_cursor.h"

namespace cistern {

// The samples of one batch that this worker takes.
struct BatchSamples {
  SampleBlock block;
  size_t all = 0;           // of the batch, with those of other workers
  uint32_t epoch = 0;       // of the first sample of all
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
    // The samples of each batch that are taken, from and to; the others are passed over.
    size_t part_begin = 0, part_end = 1;
    size_t inputs = 0;
    uint32_t epochs = 1;  // 0: without end
    // A batch that an epoch cannot fill takes its missing samples from the next.
    bool wrap = false;
  };
  // start: where the first batch begins; what comes before it is passed over by the first Next.
  SampleCursor(const Options& options, OpenReader open, const DataPlace& start = {})
      : options_(options), open_(std::move(open)), skip_(start.sample), opened_(start.epoch) {}

  // Fills `out` with the next batch; false when there is none. kDataLoss if an epoch has no sample,
  // or ends before `start`.
  absl::StatusOr<bool> Next(BatchSamples* out);
  // Where the next batch begins.
  DataPlace place() const;
  bool at_end() const { return reader_ == nullptr && skip_ == 0 && AllOpened(); }

 private:
  // Goes on in the batch with as many samples as are alike, read or passed over; 0 at the end of
  // the epoch.
  absl::StatusOr<size_t> Take(BatchSamples* out);
  // Opens the next epoch unless the batch in `out` is to do without it; false then.
  absl::StatusOr<bool> OpenEpoch(const BatchSamples& out);
  absl::Status SkipToStart();
  bool AllOpened() const { return options_.epochs != 0 && opened_ >= options_.epochs; }

  const Options options_;
  const OpenReader open_;
  uint64_t skip_;                         // samples before the start, until they are passed over
  std::unique_ptr<SampleReader> reader_;  // of epoch opened_ - 1; null between epochs
  uint32_t opened_;
  uint64_t epoch_samples_ = 0;  // read by reader_
  bool has_ahead_ = false;      // one more sample of reader_ was read
  SampleBlock ahead_;           // that sample, where it will be taken
  SampleBlock passed_over_;
};

}  // namespace cistern
