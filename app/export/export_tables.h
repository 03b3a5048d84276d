// The tables that an export writes, by name.
#pragma once

#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/base/types.h"
#include "proto/schema.pb.h"

namespace cistern::app {

// The ids of the named sparse tables, ascending; of all that `wanted` accepts without a name.
// kInvalidArgument: an unknown name, or no table at all.
absl::StatusOr<std::vector<TableId>> TablesOf(const v1::Schema& schema,
                                              const std::vector<std::string>& names,
                                              bool (*wanted)(const v1::TableSpec&));

// `files`, unless it is more than a count of files can be (kInvalidArgument).
absl::StatusOr<uint32_t> FileCount(uint64_t files);

}  // namespace cistern::app
