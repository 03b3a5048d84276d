// Goes over a data set in the order of its files. Every worker takes a range of each batch.
#pragma once

#include <functional>
#include <memory>

#include "common/base/status.h"
#include "worker/data/format/sample_reader.h"
#include "worker/data/source/batch_cursor.h"

namespace cistern::data {

// Reads one sample ahead to find out whether a batch ends its epoch.
//
// Threads: one at a time.
class SampleCursor : public BatchCursor {
 public:
  using OpenReader = std::function<absl::StatusOr<std::unique_ptr<SampleReader>>(uint32_t epoch)>;
  struct Options {
    size_t batchsize = 1;
    // The range of samples to take from each batch; the cursor skips the others.
    size_t part_begin = 0, part_end = 1;
    size_t inputs = 0;
    uint32_t epochs = 1;  // 0: unlimited
    // The last batch of an epoch takes its missing samples from the next epoch.
    bool wrap = false;
  };
  // start: where the first batch begins. The first call of Next skips the samples before it.
  SampleCursor(const Options& options, OpenReader open, const DataPlace& start = {})
      : options_(options), open_(std::move(open)), skip_(start.sample), opened_(start.epoch) {}

  absl::StatusOr<bool> Next(BatchSamples* out) override;
  DataPlace place() const override;
  bool at_end() const override { return reader_ == nullptr && skip_ == 0 && AllOpened(); }

 private:
  // Continues the batch: either reads samples that this worker takes or skips samples of others.
  // Returns how many; 0 at the end of the epoch.
  absl::StatusOr<size_t> Take(BatchSamples* out);
  // Opens the next epoch; false, without opening it, if the batch in `out` does not need it.
  absl::StatusOr<bool> OpenEpoch(const BatchSamples& out);
  absl::Status SkipToStart();
  bool AllOpened() const { return options_.epochs != 0 && opened_ >= options_.epochs; }

  const Options options_;
  const OpenReader open_;
  uint64_t skip_;                         // samples to skip before the start; 0 once done
  std::unique_ptr<SampleReader> reader_;  // for epoch opened_ - 1; null between epochs
  uint32_t opened_;
  uint64_t epoch_samples_ = 0;  // samples that reader_ has read or skipped
  bool has_ahead_ = false;      // reader_ has read one sample ahead
  SampleBlock ahead_;           // that sample, if this worker takes it
  SampleBlock passed_over_;
  SampleBlock::Sizes last_;  // of the last batch
};

}  // namespace cistern::data
