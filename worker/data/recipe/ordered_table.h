// Several tables with the same columns in different orders, read as if they had one order.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "worker/data/recipe/text_table.h"

namespace cistern::data {

// `table` with the columns of `order`, which are those of the table at `first`, in any case
// (known_names.h). `path` is the table's own.
//
// kDataLoss names the first column that one of the two has and the other lacks, and the option
// add_column, which makes it an empty one.
absl::StatusOr<std::unique_ptr<TextTable>> InOrder(std::unique_ptr<TextTable> table,
                                                   const std::string& path,
                                                   const std::vector<std::string>& order,
                                                   const std::string& first);

// The same for a table with columns more or less: the former are left out, the latter are empty.
std::unique_ptr<TextTable> InOrderAsFound(std::unique_ptr<TextTable> table,
                                          const std::vector<std::string>& order);

// `table` with those of `names` that it lacks, as columns that are empty in all rows.
std::unique_ptr<TextTable> WithEmptyColumns(std::unique_ptr<TextTable> table,
                                            const std::vector<std::string>& names);

}  // namespace cistern::data
