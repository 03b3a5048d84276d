// Goes over a data set that is divided into streams: several sequences of samples that are read
// side by side, each by one worker.
//
// A batch takes equal parts from all streams that have samples left, and holds them in the order of
// the streams. Which samples are in a batch is thus a function of the streams, and neither of the
// workers nor of what a storage or a format tells about lengths: workers share what they read, as
// numbers of samples, before they continue.
//
// Worker r of w reads the streams from S r / w to S (r + 1) / w, so that its samples are next to
// each other in a batch. With fewer streams than workers, some workers read none and take part in
// batches without samples.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "common/base/status.h"
#include "common/base/thread_pool.h"
#include "worker/data/format/sample_reader.h"
#include "worker/data/source/batch_cursor.h"
#include "worker/data/source/epoch_source.h"

namespace cistern::data {

// Threads: one at a time.
class StreamCursor : public BatchCursor {
 public:
  // Opens a stream of an epoch at its start.
  using OpenStream =
      std::function<absl::StatusOr<std::unique_ptr<SampleReader>>(uint32_t epoch, uint32_t stream)>;
  using Share = ShareNumbers;
  struct Options {
    size_t batchsize = 1;
    uint32_t streams = 1;          // with `begins`: until its first epoch begins
    uint32_t part = 0, parts = 1;  // this is worker `part` of `parts`
    size_t inputs = 0;
    uint32_t epochs = 1;  // 0: unlimited
    bool wrap = false;    // the last batch of an epoch takes its missing samples from the next one
    ThreadPool* threads = nullptr;  // decode streams side by side; must outlive the cursor
    // Begins each epoch, for data that never ends; must outlive the cursor. Null: files.
    EpochSource* begins = nullptr;
  };
  // start: where the first batch begins; kDataLoss from Next if it is not of as many streams.
  StreamCursor(const Options& options, OpenStream open, Share share, const DataPlace& start = {});

  absl::StatusOr<bool> Next(BatchSamples* out) override;
  DataPlace place() const override;
  std::string slice() const override {
    return options_.begins == nullptr ? "" : options_.begins->slice();
  }
  bool at_end() const override { return !is_open_ && start_.sample == 0 && AllOpened(); }

 private:
  // What all workers know of a stream.
  struct Stream {
    uint64_t taken = 0;    // samples, by batches so far
    bool is_live = false;  // has a sample left
  };
  // A stream that this worker reads, one sample ahead: so it knows whether the stream is live.
  struct Reading {
    std::unique_ptr<SampleReader> reader;
    SampleBlock ahead;
    SampleBlock taken;  // of one round
  };
  // Samples that one stream gave to the batch in one round: [first, first + count) of the block.
  struct Piece {
    size_t stream = 0, first = 0, count = 0;
  };

  bool AllOpened() const { return options_.epochs != 0 && opened_ >= options_.epochs; }
  bool AnyLive() const;
  // Divides `streams` among the workers.
  void SetStreams(uint32_t streams);
  // Opens the next epoch; false, without opening it, if the batch in `out` does not need it.
  absl::StatusOr<bool> OpenEpoch(const BatchSamples& out);
  // Opens a stream of this worker after its first `skip` samples.
  absl::Status OpenStreamAt(size_t stream, uint64_t skip);
  // Takes samples from all live streams: `wanted`, or fewer where streams end.
  absl::Status TakeRound(size_t wanted, BatchSamples* out);
  // How many of `wanted` samples each stream gives, if it has as many.
  std::vector<uint64_t> Quotas(uint64_t wanted) const;
  // Appends this worker's samples of a round to `block`; pieces: where they are, by stream. Returns
  // for each of its streams how many samples it gave, and whether it is live.
  absl::StatusOr<std::vector<uint64_t>> TakeOwn(const std::vector<uint64_t>& quotas,
                                                SampleBlock* block, std::vector<Piece>* pieces);
  // Moves up to `quota` samples to reading->taken.
  absl::Status Take(uint64_t quota, Reading* reading) const;
  absl::Status ReadAhead(Reading* reading) const;
  absl::StatusOr<std::vector<std::vector<uint64_t>>> ShareOwn(
      const absl::StatusOr<std::vector<uint64_t>>& own) const;
  // Sorts the samples by stream after a batch of several rounds.
  void Order(BatchSamples* out);
  Reading& reading(size_t stream) { return readings_[stream - begin_]; }

  Options options_;
  const OpenStream open_;
  const Share share_;
  size_t begin_ = 0, end_ = 0;  // the streams of this worker
  DataPlace start_;             // sample > 0: not yet reached
  uint32_t opened_;             // epochs opened so far, including those before the start
  bool is_open_ = false;        // of epoch opened_ - 1, samples are left
  uint64_t epoch_samples_ = 0;
  std::vector<Stream> streams_;
  std::vector<Reading> readings_;  // by stream of this worker
  std::vector<Piece> pieces_;      // of the current batch
  SampleBlock scratch_;
  SampleBlock::Sizes last_;  // of the last batch
};

}  // namespace cistern::data
