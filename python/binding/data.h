// Data sets: files of any format as batches of arrays.
#pragma once

#include "python/binding/arrays.h"

namespace cistern::python {

void BindData(nb::module_& module);

}  // namespace cistern::python
