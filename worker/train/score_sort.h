// Sorting of predictions for AUC, by the device that made them.
#pragma once

#include <vector>

#include "cuda/core/device_context.h"

namespace cistern {

// Puts `scores`, none below +0 and no NaN, into ascending order on the GPU of `device`, which takes
// milliseconds for millions; on the host where the GPU has no room for them, or has an error (which
// its stream keeps).
//
// Threads: that of the device's stream.
void SortScoresOn(DeviceContext& device, std::vector<float>* scores);

}  // namespace cistern
