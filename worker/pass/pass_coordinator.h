// How workers that make their passes side by side agree where a pass ends.
#pragma once

#include <memory>
#include <vector>

#include "worker/data/source/pass_source.h"
#include "worker/group/process_group.h"

namespace cistern {

// Batch by batch each tells the owners of keys which new ones its part has, and all count alike
// what the pass then takes of each one's memory: the values of the keys that it owns, and its parts
// of the batches. value_bytes: as PassOptions. group outlives it, and is used by the thread of the
// PassSource.
std::unique_ptr<PassCoordinator> CoordinatorOf(ProcessGroup& group,
                                               const std::vector<size_t>& value_bytes);

}  // namespace cistern
