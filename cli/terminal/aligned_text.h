// Formats rows of cells as aligned columns.
#pragma once

#include <string>
#include <vector>

namespace cistern::cli {

// rows[0] is the heading; all rows have its length. Columns are two spaces apart. A column is
// right-aligned if all cells below the heading start with a digit, are "-" or empty.
std::string AlignedText(const std::vector<std::vector<std::string>>& rows);

}  // namespace cistern::cli
