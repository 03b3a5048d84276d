// Rows of words in aligned columns.
#pragma once

#include <string>
#include <vector>

namespace cistern {

// Columns are two spaces apart; those whose cells below the heading are all numbers (digits first)
// are aligned to the right. rows[0]: the heading; all rows are as long as it.
std::string TextTable(const std::vector<std::vector<std::string>>& rows);

}  // namespace cistern
