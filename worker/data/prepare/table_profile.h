// Counts what the columns of a table hold: types, distinct and missing values, spread.
//
// One pass over the whole file. Memory is bounded: exact counts up to a limit, estimates beyond,
// and a random sample of the rows.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/base/status.h"
#include "worker/data/prepare/table_layout.h"

namespace cistern {

enum class ColumnType {
  kEmpty,    // no value at all
  kInteger,  // every value is an integer
  kNumber,   // every value is a finite number
  kTime,     // every value is a date such as 2024-05-31 or 2024-05-31 12:00:00
  kText,
};
const char* Word(ColumnType type);

struct ColumnProfile {
  std::string name;
  ColumnType type = ColumnType::kEmpty;
  uint64_t missing = 0;
  uint64_t distinct = 0;       // of the values that are not missing
  bool distinct_exact = true;  // false: estimated within about 2 %
  // Of integers and numbers.
  double min = 0, max = 0, mean = 0, deviation = 0, skewness = 0;
  // All values and their counts in the order of the file, if there are at most kFewValues.
  static constexpr size_t kFewValues = 16;
  std::vector<std::pair<std::string, uint64_t>> values;
};

struct TableProfile {
  std::string path;
  TableLayout layout;
  uint64_t rows = 0;
  std::vector<ColumnProfile> columns;
  std::vector<std::string> missing_values;  // texts such as NA that stand for a missing value here
  // Rows drawn at random, by column; missing values are empty. At most kSampleRows, fewer where the
  // table is wide; texts are cut off at kSampleText bytes.
  std::vector<std::vector<std::string>> sample;
  static constexpr size_t kSampleRows = 20000, kSampleCells = 2000000, kSampleText = 64;
};

// Called every few thousand rows with the rows and bytes read so far; false stops.
using ProfileProgress = std::function<bool(uint64_t rows, uint64_t bytes)>;

// kDataLoss: a damaged row, or a table without rows, with file and line. kCancelled: stopped.
absl::StatusOr<TableProfile> ProfileTable(const std::string& path, const TableLayout& layout,
                                          const ProfileProgress& progress = nullptr);

// A date or time as a number that orders like it: 2024-05-31 12:00:00 is 20240531120000, and an
// integer is itself. nullopt for other text.
std::optional<int64_t> TimeOrder(absl::string_view text);

}  // namespace cistern
