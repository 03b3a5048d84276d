// The parts of the module that declare nothing else, each in a file of its name.
#pragma once

#include "python/binding/arrays.h"

namespace cistern::python {

void BindData(nb::module_& module);      // data sets: files of any format as batches of arrays
void BindFileJobs(nb::module_& module);  // jobs that need no training: plan, diff, verify, export
void BindJobs(nb::module_& module);      // train, evaluate, predict, on a fleet that Python holds
void BindRows(nb::module_& module);      // the rows of a training loop, and the sums over them
void BindServing(nb::module_& module);   // predictions from a serving folder, in this process
void BindStepRun(nb::module_& module);   // a training that is driven step by step

}  // namespace cistern::python
