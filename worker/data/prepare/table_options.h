// From the roles of a table's columns to the options of a conversion.
#pragma once

#include "worker/data/prepare/table_plan.h"

namespace cistern::data {

// A model has at least one slot: of numbers alone, each becomes a slot of buckets, too; only the
// first does if `one`.
void AddSlotIfNone(bool one, TablePlan* plan);

// Fills in what follows from plan->label and plan->columns: options (but input, out and select),
// slots, dense and values.
void WriteOptions(const TableProfile& profile, const TableWishes& wishes, TablePlan* plan);

}  // namespace cistern::data
