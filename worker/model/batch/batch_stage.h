// Brings batches into the memory of the device, one ahead of the step that computes.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/base/status.h"
#include "cuda/core/device_context.h"
#include "cuda/core/event.h"
#include "worker/data/source/batch.h"

namespace cistern {

// The arrays of a SparseBatch where ops can read them.
struct SparseView {
  const uint32_t* offsets = nullptr;
  const Row* rows = nullptr;
  const Key* keys = nullptr;  // where rows were found on the device
  const Row* segment_rows = nullptr;
  const uint32_t* segment_offsets = nullptr;
  const uint32_t* segment_outputs = nullptr;
  size_t distinct = 0;  // segment_rows
};

// The arrays of ExchangedRows where ops can read them; the numbers of rows stay with the host.
struct ExchangeView {
  absl::Span<const uint32_t> taken, given;  // by worker
  SparseView served;
  const uint32_t* occurrence_offsets = nullptr;
  const uint32_t* occurrences = nullptr;
};

// The arrays of a Batch where ops can read them.
struct BatchView {
  size_t size = 0, label_dim = 0;
  size_t all = 0, first = 0;
  const float* label = nullptr;
  const float* dense = nullptr;
  std::vector<SparseView> sparse;  // by input
  std::vector<ExchangeView> exchanged;
};

// On the CPU a view points into the batch itself. On a GPU a batch is packed into pinned memory and
// copied at once, on a stream of its own, where rows and segments are made that the host has left
// to it; there are two places, so that the next batch comes while this one is computed.
//
// Threads: one at a time.
class BatchStage {
 public:
  explicit BatchStage(DeviceContext& device) : device_(device) {}
  BatchStage(const BatchStage&) = delete;
  BatchStage& operator=(const BatchStage&) = delete;
  ~BatchStage();

  // kPredict: nobody reads the segments.
  enum class Use { kTrain, kPredict };
  // Starts to bring `batch`, which must not change before View asks for it.
  absl::Status Begin(const Batch& batch, Use use = Use::kTrain);
  // Begin would take no memory, for which it waits for the step before last.
  bool HasRoom(const Batch& batch) const;
  // Where `batch` is for what the device's stream is given from now on, until Release. Brings it
  // now unless it was the last that was begun.
  absl::StatusOr<BatchView> View(const Batch& batch, Use use = Use::kTrain);
  // The step that was given the last view is enqueued.
  void Release();

 private:
  struct Place {
    const Batch* begun = nullptr;  // not viewed yet
    BatchView view;
    Memory pinned, there;
    Memory made;                // on the device: rows, segments, and their numbers
    Memory distinct;            // pinned: how many distinct rows each has
    std::vector<Event> events;  // kCopied, kUsed
  };
  enum { kCopied, kUsed };

  absl::Status MakeStreams();
  // Room for `bytes`, taken where the memory has less. What a place held before is not used any
  // more.
  absl::Status MakeRoom(MemoryPlace kind, size_t bytes, Place* place, Memory* memory);
  // Enqueues what makes the rows and segments that the host has left to the device.
  absl::Status Make(const Batch& batch, Use use, Place* place);

  DeviceContext& device_;
  std::vector<Stream> copies_;  // one on a GPU
  Memory scratch_;              // of what makes segments
  std::array<Place, 2> places_;
  size_t next_ = 0;    // the place that Begin takes
  size_t viewed_ = 0;  // the place of the last view
};

}  // namespace cistern
