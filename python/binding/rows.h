// The rows of a training loop in Python, and the sums over them.
#pragma once

#include "python/binding/arrays.h"

namespace cistern::python {

void BindRows(nb::module_& module);

}  // namespace cistern::python
