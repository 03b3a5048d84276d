// Divides data that never ends into epochs, while it arrives.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "worker/data/format/sample_reader.h"

namespace cistern::data {

// Returns the numbers of every worker, by rank; an error becomes the error of all workers. Null: a
// single worker.
using ShareNumbers = std::function<absl::StatusOr<std::vector<std::vector<uint64_t>>>(
    const absl::StatusOr<std::vector<uint64_t>>& own)>;

// Threads: one at a time.
class EpochSource {
 public:
  virtual ~EpochSource() = default;
  // Waits until the samples of `epoch` are known: at least one. All workers call it, for the same
  // epochs in the same order. false: the data has ended.
  virtual absl::StatusOr<bool> Begin(uint32_t epoch, const ShareNumbers& share) = 0;
  // The number of streams of the epoch that began last, or of the next one if none has begun. Each
  // epoch may have another.
  virtual uint32_t streams() const = 0;
  // Opens a stream of this worker in the epoch that began last, at its start.
  virtual absl::StatusOr<std::unique_ptr<SampleReader>> Open(uint32_t stream) = 0;
  // What a later process needs to make the epoch that began last again (DataPlace::slice), and to
  // continue after it.
  virtual std::string slice() const = 0;
  virtual std::string next_slice() const = 0;
};

}  // namespace cistern::data
