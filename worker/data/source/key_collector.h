// Collects the distinct keys of a pass, batch by batch, while the pass is cut.
#pragma once

#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "common/base/status.h"
#include "worker/data/format/sample_block.h"
#include "worker/data/source/batch.h"
#include "worker/data/source/pass_keys.h"

namespace cistern::data {

// Order of calls: for each batch, Add and then Drop or Take; at the end of the pass, Finish.
//
// Threads: one at a time.
class KeyCollector {
 public:
  // Creates a collector on the host. It turns keys into rows as they are added.
  static std::unique_ptr<KeyCollector> OnHost(size_t inputs);
  virtual ~KeyCollector() = default;

  // Adds the keys of a batch.
  virtual absl::Status Add(const SampleBlock& samples) = 0;
  // Number of distinct keys of an input, including the last added batch.
  virtual size_t size(size_t input) const = 0;
  // For PassCoordinator: the distinct keys of an input that are new in the last added batch. Empty
  // if the collector is for a single worker.
  virtual absl::Span<const Key> added(size_t input) const = 0;
  // Removes the last added batch.
  virtual void Drop() = 0;
  // Turns the last added samples into a batch.
  virtual HostBatch Take(SampleBlock&& samples) = 0;
  // Ends the pass, which already has its batches: sets its keys, and in the batches the object that
  // looks up their rows. The next Add starts another pass.
  virtual absl::Status Finish(Pass* pass) = 0;

  // Whether the host builds the segments of a batch.
  virtual bool wants_segments() const = 0;
};

}  // namespace cistern::data
