// Predictions from a serving folder, in this process.
#pragma once

#include "python/binding/arrays.h"

namespace cistern::python {

void BindServing(nb::module_& module);

}  // namespace cistern::python
