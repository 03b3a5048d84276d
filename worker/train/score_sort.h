// Sorting of predictions for AUC, on the device that computed them.
#pragma once

#include <vector>

#include "cuda/core/device_context.h"

namespace cistern {

// Sorts `scores` (all at least +0, no NaN) in ascending order on the GPU of `device`, which takes
// milliseconds for millions. Sorts on the host if the GPU lacks memory or has an error (which its
// stream keeps).
//
// Threads: that of the device's stream.
void SortScoresOn(DeviceContext& device, std::vector<float>* scores);

}  // namespace cistern
