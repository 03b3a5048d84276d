// Counts what the columns of a table hold: types, distinct and missing values, spread.
//
// One pass over the whole file, and a further one if numbers are not plain, or if columns have
// other parts than the first rows show. Memory is bounded: exact counts up to a limit, estimates
// beyond, and a random sample of the rows.
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
#include "worker/data/prepare/time_text.h"
#include "worker/data/recipe/number_form.h"

namespace cistern::data {

enum class ColumnType {
  kEmpty,    // no value at all
  kInteger,  // every value is an integer, of any length: 1047, 1047.0 (value_text.h)
  kNumber,   // every value is a number
  kTime,     // every value is a date or time of one form (time_text.h)
  kText,
};
const char* Word(ColumnType type);

struct ColumnProfile {
  std::string name;
  ColumnType type = ColumnType::kEmpty;
  uint64_t missing = 0;        // infinite ones among numbers included
  uint64_t distinct = 0;       // of the values that are not missing
  bool distinct_exact = true;  // false: estimated within about 2 %
  uint64_t infinite = 0;       // of numbers: inf, -inf, 1e400 ...
  // kInteger: some are written as floats (1047.0, 1e15).
  bool float_text = false;
  // Of numbers that are not plain; min, max and so on are those of the plain ones, and so are the
  // sampled texts.
  std::optional<NumberForm> number_form = {};
  TimeForm time_form;  // kTime; kEpochs for numbers
  // kText: values that are no times although 99 in a hundred are, and the first of them.
  uint64_t odd_times = 0;
  std::string odd_time;
  std::string unreadable;  // why the column cannot be read; "" if it can
  // Of a column with parts (TableLayout::parts): rows that lack them, the first of them, from 1,
  // and whether they are members of objects, not numbers of lists.
  uint64_t odd = 0, first_odd = 0;
  bool has_members = false;
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
  uint64_t distinct_rows = 0;  // exact up to 65,536, estimated beyond
  std::vector<ColumnProfile> columns;
  // Rows drawn at random, by column; missing values are empty. At most kSampleRows, fewer where the
  // table is wide; texts are cut off at kSampleText bytes.
  std::vector<std::vector<std::string>> sample;
  static constexpr size_t kSampleRows = 20000, kSampleCells = 2000000, kSampleText = 64;
  // Of more rows drawn at random, for what needs many of them: HashOfField of each field, row by
  // row. At most kHashedRows, fewer where the table is wide.
  std::vector<uint32_t> field_hashes;
  static constexpr size_t kHashedRows = 100000, kHashedCells = 4000000;
};

// 0 if the field is empty, as that of a missing value is.
uint32_t HashOfField(absl::string_view field);

// The hash of all fields of a row.
uint64_t HashOfRow(const std::vector<absl::string_view>& fields);

// Called every few thousand rows with the rows and bytes read so far; false stops.
using ProfileProgress = std::function<bool(uint64_t rows, uint64_t bytes)>;

// kDataLoss: a damaged row, or a table without rows, with file and line. kCancelled: stopped.
absl::StatusOr<TableProfile> ProfileTable(const std::string& path, const TableLayout& layout,
                                          const ProfileProgress& progress = nullptr);

}  // namespace cistern::data
