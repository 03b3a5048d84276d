// A committed model whose reads end when the caller of a job asks.
#pragma once

#include <atomic>
#include <memory>

#include "worker/export/committed_model.h"

namespace cistern::app {

// `model`, whose Scan, ScanCached and Pull return kCancelled once *stop is set: exports, which read
// through them, then remove what they have written. stop: outlives the result; null: `model`
// itself.
std::unique_ptr<CommittedModel> Stoppable(std::unique_ptr<CommittedModel> model,
                                          const std::atomic<bool>* stop);

}  // namespace cistern::app
