// The distinct keys of a pass, collected batch by batch while it is cut.
#pragma once

#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "common/base/status.h"
#include "worker/data/format/sample_block.h"
#include "worker/data/source/batch.h"
#include "worker/data/source/pass_keys.h"

namespace cistern {

// The order of calls: Add, then Drop or Take; and Finish.
//
// Threads: one at a time.
class KeyCollector {
 public:
  // On the host: keys become rows as they come.
  static std::unique_ptr<KeyCollector> OnHost(size_t inputs);
  virtual ~KeyCollector() = default;

  // Adds the keys of a batch.
  virtual absl::Status Add(const SampleBlock& samples) = 0;
  // Distinct keys of an input, with those of the batch that was added last.
  virtual size_t size(size_t input) const = 0;
  // Keys of an input that none of the pass before the batch that was added last had, each once, for
  // PassCoordinator; empty of a collector that is for one worker alone.
  virtual absl::Span<const Key> added(size_t input) const = 0;
  // Forgets the batch that was added last.
  virtual void Drop() = 0;
  // Makes a batch of the one that was added last.
  virtual Batch Take(SampleBlock&& samples) = 0;
  // Ends the pass, which has its batches: gives it its keys, and the batches what finds their rows.
  // What is added next is of another pass.
  virtual absl::Status Finish(Pass* pass) = 0;

  // The host makes the segments of a batch.
  virtual bool wants_segments() const = 0;
};

}  // namespace cistern
