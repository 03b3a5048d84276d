// Copies batches to the device, one batch ahead of the step that is being computed.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <vector>

#include "absl/types/span.h"
#include "common/base/status.h"
#include "cuda/core/device_context.h"
#include "cuda/core/event.h"
#include "worker/data/source/batch.h"

namespace cistern::model {

// The arrays of a HostSparseBatch in memory that ops can read.
struct DeviceSparseBatch {
  const uint32_t* offsets = nullptr;
  const Row* rows = nullptr;
  const Key* keys = nullptr;  // set if the device finds the rows
  const Row* segment_rows = nullptr;
  const uint32_t* segment_offsets = nullptr;
  const uint32_t* segment_outputs = nullptr;
  const float* weights = nullptr;  // null, as those below: keys have no weights
  const float* shares = nullptr;
  const uint32_t* segment_places = nullptr;
  size_t occurrences = 0;
  size_t distinct = 0;  // number of segment_rows
};

// The arrays of HostExchange in memory that ops can read; the row counts stay in host memory.
struct DeviceExchange {
  absl::Span<const uint32_t> taken, given;  // by worker; host memory
  DeviceSparseBatch served;
  const uint32_t* occurrence_offsets = nullptr;
  const uint32_t* occurrences = nullptr;
};

// The arrays of a HostBatch in memory that ops can read.
struct DeviceBatch {
  size_t size = 0, label_dim = 0;
  size_t all = 0, first = 0;  // samples of all workers; the first of these among them
  const float* label = nullptr;
  const float* weight = nullptr;  // null: every weight is 1
  const float* dense = nullptr;
  std::vector<DeviceSparseBatch> sparse;  // by input
  std::vector<DeviceExchange> exchanged;
};

// Makes a batch readable for ops. On the CPU a view points into the batch itself. On a GPU the
// stage packs the batch into pinned memory and copies it in one transfer, on a separate stream. The
// same stream then computes the rows and segments that the host has left to the device. Three
// places take turns: while one batch is computed, the next is there or being copied, and the one
// after it is packed, so that neither device nor host waits for a copy.
//
// Threads: one at a time.
class BatchStage {
 public:
  explicit BatchStage(DeviceContext& device) : device_(device) {}
  BatchStage(const BatchStage&) = delete;
  BatchStage& operator=(const BatchStage&) = delete;
  ~BatchStage();

  // kPredict: the segments are not needed.
  enum class Use { kTrain, kPredict };
  // The number of batches that can be begun beside the one in view.
  static constexpr size_t kAhead = 2;
  // Starts copying those of `batches` that are not begun yet. batches: the next ones, in the order
  // of the calls of View, at most kAhead; they must not change until View returns them.
  absl::Status Begin(absl::Span<const data::HostBatch* const> batches, Use use = Use::kTrain);
  // True if Begin would not allocate. An allocation makes Begin wait for earlier steps.
  bool HasRoom(absl::Span<const data::HostBatch* const> batches) const;
  // Returns the view of `batch` for work that is enqueued on the device's stream until Release.
  // Copies the batch now unless it is the next that was begun. Batches that were begun and are not
  // viewed next are forgotten.
  absl::StatusOr<DeviceBatch> View(const data::HostBatch& batch, Use use = Use::kTrain);
  // Call it when all work that reads the last view is enqueued.
  void Release();

 private:
  struct Place {
    DeviceBatch view;
    Memory pinned, there;       // the packed batch: on the host, on the device
    Memory made;                // on the device: rows and segments computed there, and their counts
    Memory distinct;            // pinned: the number of distinct rows of each input
    std::vector<Event> events;  // kCopied, kUsed
  };
  enum { kCopied, kUsed };

  absl::Status MakeStreams();
  absl::Status BeginOne(const data::HostBatch& batch, Use use);
  // Forgets all begun batches but the first `kept`.
  void Forget(size_t kept);
  // Grows *memory to at least `bytes`. Waits until the place's previous batch is no longer in use.
  absl::Status MakeRoom(MemoryPlace kind, size_t bytes, Place* place, Memory* memory);
  // Enqueues the ops that compute the rows and segments that the host has left to the device.
  absl::Status Make(const data::HostBatch& batch, Use use, Place* place);

  DeviceContext& device_;
  std::vector<Stream> copies_;  // one on a GPU
  Memory scratch_;              // for op::MakeSegments
  std::array<Place, kAhead + 1> places_;
  std::deque<uint64_t> begun_;  // numbers of the batches in the places before next_, not viewed yet
  size_t next_ = 0;             // the place for the next batch
  size_t viewed_ = 0;           // the place of the last view
};

}  // namespace cistern::model
