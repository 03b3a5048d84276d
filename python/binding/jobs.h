// The jobs of the trainer on a fleet that Python holds: train, evaluate, predict.
#pragma once

#include "python/binding/arrays.h"

namespace cistern::python {

void BindJobs(nb::module_& module);

}  // namespace cistern::python
