// The jobs that need no training: plan, diff, verify, status and export.
#pragma once

#include "python/binding/arrays.h"

namespace cistern::python {

void BindFileJobs(nb::module_& module);

}  // namespace cistern::python
