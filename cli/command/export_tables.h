// --tables of the exports that write rows: the tables of a model, by name.
#pragma once

#include <string>
#include <vector>

#include "cli/terminal/command_line.h"
#include "common/base/status.h"
#include "common/base/types.h"
#include "proto/schema.pb.h"

namespace cistern {

void AddTablesFlag(Command& command, std::vector<std::string>* names);

// The ids of the named sparse tables, ascending; of all that `wanted` accepts without a name.
// kInvalidArgument, with a fix: an unknown name, or no table at all.
absl::StatusOr<std::vector<TableId>> TablesOf(const v1::Schema& schema,
                                              const std::vector<std::string>& names,
                                              bool (*wanted)(const v1::TableSpec&));

}  // namespace cistern
