// What a training reports at its end.
#pragma once

#include <string>

#include "worker/train/jobs.h"

namespace cistern {

std::string TextOf(const TrainSummary& summary);

}  // namespace cistern
