// Opens a file with the layout that was found.
#pragma once

#include <memory>
#include <string>

#include "common/base/status.h"
#include "worker/data/prepare/table_layout.h"
#include "worker/data/recipe/text_table.h"

namespace cistern::data {

// Errors as OpenDelimited.
absl::StatusOr<std::unique_ptr<TextTable>> OpenLaidOut(const std::string& path,
                                                       const TableLayout& layout);

}  // namespace cistern::data
