// A training on a fleet of this process, driven step by step.
#pragma once

#include "python/binding/arrays.h"

namespace cistern::python {

void BindStepRun(nb::module_& module);

}  // namespace cistern::python
