// Plans what becomes of each column of a table: the label, a slot, a dense feature, or nothing; and
// which rows are held out for evaluation.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "worker/data/prepare/convert.h"
#include "worker/data/prepare/label_choice.h"
#include "worker/data/prepare/table_profile.h"

namespace cistern::data {

enum class ColumnRole { kLabel, kWeight, kSlot, kDense, kIgnored, kTime };
const char* Word(ColumnRole role);

struct ColumnChoice {
  ColumnRole role = ColumnRole::kIgnored;
  bool log1p = false;   // kDense: the logarithms are standardized, not the numbers
  bool bucket = false;  // kDense: also a slot, cut into logarithmic buckets
  bool values = false;  // kDense: also a slot of its values
  std::optional<ConvertOptions::ListForm> list = {};     // kSlot: of a column with several values
  std::optional<std::pair<double, double>> bounds = {};  // kDense: of numbers that are not outliers
  std::vector<double> pieces = {};  // kDense: also a feature for each piece between two of these
  bool tells_missing = false;       // kDense: also a feature that is 1 where the number is missing
  std::vector<std::string> none = {};  // kDense: numbers that stand for none, such as -9999
  std::string note;                    // why, for people
};

// Which rows are held out.
struct HeldOutRows {
  // Rows whose time column is `since` or later. Not set: a tenth of the rows, by a hash of the
  // row's number.
  std::optional<size_t> time_column;
  TimeForm time_form;
  int64_t since = 0;
  // Of these rows, one in so many, by the same hash: a day can be a large part of a table.
  uint64_t one_in = 1;
  // The hash is that of the row's fields, so that rows that are equal are held out together.
  bool by_content = false;

  bool Contains(uint64_t row, const std::vector<absl::string_view>& fields) const;
};

struct TablePlan {
  LabelChoice label;               // the first one, of several
  std::vector<LabelChoice> heads;  // all of several labels, in their order; empty: there is one
  std::optional<size_t> weight;    // the column of the sample's weight
  std::vector<ColumnChoice> columns;
  HeldOutRows held_out;
  size_t slots = 0, dense = 0;  // of a sample
  uint64_t values = 0;          // distinct ones of all slots but buckets
  bool several_values = false;  // a slot can hold more than one
  double pair_gain = 0;         // of the slots with one value a row (PairGain)
  // The conversion. input is the table; out and select are for the caller to set.
  ConvertOptions options;
};

// What people decided already. Columns that are named nowhere are chosen by their values.
struct TableWishes {
  std::string label;                  // empty: found; several: between commas (label_heads.h)
  std::vector<std::string> positive;  // of one label
  std::vector<std::string> dense, sparse, ignore;
  std::vector<std::string> cross = {};  // each a list of columns, separated by commas
  std::vector<std::string> share = {};  // likewise: columns whose values are those of one thing
  std::vector<std::string> multi = {};  // columns that hold several values
  char separator = 0;                   // of these values; 0: found
  // Columns of several values whose weights count (ConvertOptions::key_weights).
  std::vector<std::string> key_weights = {};
  std::string weight = {};                     // the column of the sample's weight; empty: none
  std::optional<double> label_threshold = {};  // labels above it are positive
  uint64_t min_count = 0;  // values seen fewer times in their column are rare; 0: chosen
};

// The wishes for a table of libsvm or libffm lines: all its features are slots, whose keys have
// weights if `wishes` say so or layout->values does, which then agree. Other tables: no change.
void WishFeatureLines(TableLayout* layout, TableWishes* wishes);

// Text and integers of few values become slots. So do integers that number things: their name says
// so, they fill a range, neighbouring values have different click rates (ValueEffect), or they look
// like ids (LooksLikeIds). Other numbers are dense: log1p and a slot of buckets if they are skewed
// and not negative (except for a few small codes), else standardized, with a slot of their values
// if neighbouring ones have different click rates. With few rows of the rarer label there are no
// buckets, and a count of few values is dense unless its values look like codes.
//
// Ignored are times, columns of one value, columns with a new value in almost every row, columns
// that decide the label in all rows or in a part of them, weights of samples unless they are
// wished, and ids of queries.
//
// kInvalidArgument: as ChooseLabel, ChooseHeads and CheckSampleWeight; positive texts or a
// threshold for several labels; a wish names no column, or a column twice; no feature is left.
absl::StatusOr<TablePlan> PlanTable(const TableProfile& profile, const TableWishes& wishes);

}  // namespace cistern::data
