// What Python does with the rows of a fleet's tables: pull, push, scan, and dense tables as wholes.
#pragma once

#include "python/binding/fleet.h"

namespace cistern::python {

absl::Status CheckTableId(const ParameterClient& client, uint32_t table);

// Committed rows of keys [n]: [n, dim], or whole values, in `out` (None: in a new array), which is
// returned.
nb::object Pull(Fleet& fleet, uint32_t table, nb::handle keys, nb::handle out, bool absent_is_zero,
                bool state);
// rows: [n, dim], beside which the committed state stays, or whole values.
void Push(Fleet& fleet, uint32_t table, nb::handle keys, nb::handle rows);
// Calls visit(keys [n], rows [n, floats]) for pieces of the table, until it returns False. The rows
// are whole values, up to date.
void Scan(Fleet& fleet, uint32_t table, nb::callable visit, size_t piece);

NumpyFloats PullDense(Fleet& fleet, uint32_t table);
void PushDense(Fleet& fleet, uint32_t table, nb::handle values);

}  // namespace cistern::python
