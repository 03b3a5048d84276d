// The pass coordinator of a process group: workers agree where each pass ends.
#pragma once

#include <memory>
#include <vector>

#include "worker/data/source/pass_source.h"
#include "worker/group/process_group.h"

namespace cistern {

// For every batch, each worker sends the new keys of its part to their owners, and all workers
// compute the same memory use of the pass on each worker: the values of the keys that it owns, and
// its parts of the batches. value_bytes: as in PassOptions. group: must outlive the coordinator;
// used by the thread of the PassSource.
std::unique_ptr<data::PassCoordinator> CoordinatorOf(group::ProcessGroup& group,
                                                     const std::vector<size_t>& value_bytes);

}  // namespace cistern
