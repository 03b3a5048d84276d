#include "worker/data/prepare/table_plan.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/shown_text.h"
#include "worker/data/prepare/column_list.h"
#include "worker/data/prepare/column_name.h"
#include "worker/data/prepare/column_plan.h"
#include "worker/data/prepare/id_numbers.h"
#include "worker/data/prepare/label_heads.h"
#include "worker/data/prepare/leak_check.h"
#include "worker/data/prepare/list_form.h"
#include "worker/data/prepare/number_spread.h"
#include "worker/data/prepare/pair_gain.h"
#include "worker/data/prepare/row_marks.h"
#include "worker/data/prepare/sample_weight.h"
#include "worker/data/prepare/table_options.h"
#include "worker/data/prepare/text_note.h"
#include "worker/data/prepare/time_column.h"
#include "worker/data/prepare/value_effect.h"
#include "worker/data/recipe/part_columns.h"
#include "worker/data/recipe/text_table.h"
#include "worker/data/recipe/value_text.h"

namespace cistern::data {
namespace {

constexpr uint64_t kFewValues = 50;         // an integer with at most as many values is a slot
constexpr uint64_t kRowsPerNumber = 50;     // likewise one that fills its range, if rows suffice
constexpr uint64_t kNumberedValues = 1000;  // one that fills a range of so many is a numbering
constexpr uint64_t kMaxCategories = 8;      // an integer with at most as many values is no count
constexpr uint64_t kRarerPerValue = 100;    // fewer rows of the rarer label know no weight a value
constexpr uint64_t kRowsPerCode = 5;        // of the values of a number that are codes
constexpr double kMinFill = 0.5;            // share of a range
constexpr double kNewValueShare = 0.9;      // of rows: an id
constexpr uint64_t kRowsPerVersion = 10;    // of a number such as 4.12
constexpr uint64_t kRowsForIds = 50;        // in fewer rows everything is new
constexpr double kMinSkew = 2;
constexpr double kMinLogDeviation = 0.5;
constexpr double kMinOutliers = 0.01;
constexpr double kMinBuckets = 3;      // from one bound to the other
constexpr uint64_t kMinMissing = 20;   // rows, to learn from a missing number
constexpr double kCodesBelow = -10;    // negative numbers above it are codes, such as -1
constexpr double kMaxQuantity = 1e15;  // the last bucket; larger integers are ids
constexpr double kHeldOutShare = 0.1, kMinHeldOut = 0.03, kMaxHeldOut = 0.3;

bool IsNumeric(ColumnType type) {
  return type == ColumnType::kInteger || type == ColumnType::kNumber;
}

uint64_t Present(const TableProfile& profile, const ColumnProfile& column) {
  return profile.rows - column.missing;
}

bool BeyondBuckets(const NumberSpread& spread) {
  return spread.max > kMaxQuantity || spread.min < -kMaxQuantity;
}

// A slot if each value of an integer means something of its own.
bool IsSlot(const TableProfile& profile, size_t place) {
  const ColumnProfile& column = profile.columns[place];
  if (column.type == ColumnType::kText) return true;
  if (column.type == ColumnType::kNumber && IsVersionName(column.name)) {
    return Present(profile, column) >= kRowsPerVersion * column.distinct;
  }
  if (column.type != ColumnType::kInteger) return false;
  if (column.distinct <= kFewValues || NumbersThings(column.name)) return true;
  const NumberSpread spread = SpreadOf(profile, place, false);
  if (BeyondBuckets(spread)) return true;
  const double fill = static_cast<double>(column.distinct) / (spread.max - spread.min + 1);
  if (fill < kMinFill) return false;
  return column.distinct >= kNumberedValues ||
         Present(profile, column) >= kRowsPerNumber * column.distinct;
}

bool IsQueryId(const TableProfile& profile, const ColumnProfile& column) {
  constexpr uint64_t kMaxRowsPerQuery = 200;
  return IsQueryIdName(column.name) && column.distinct > kFewValues &&
         profile.rows <= kMaxRowsPerQuery * column.distinct;
}

// Whether copies of rows are in the table, as they are where clicks were oversampled: held out by
// chance, they would measure what the model knows by heart. Rows of few columns are equal anyway.
bool RowsRepeat(const TableProfile& profile) {
  constexpr uint64_t kMinDistinctRows = 1000;
  constexpr double kMinCopies = 0.1;
  const double repeated =
      static_cast<double>(profile.rows) - static_cast<double>(profile.distinct_rows);
  return profile.distinct_rows >= kMinDistinctRows &&
         repeated >= kMinCopies * static_cast<double>(profile.rows);
}

std::string Percent(uint64_t part, uint64_t whole) {
  return absl::StrFormat("%.0f%%", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

class TablePlanner {
 public:
  TablePlanner(const TableProfile& profile, const TableWishes& wishes)
      : profile_(profile), wishes_(wishes) {}
  absl::StatusOr<TablePlan> Plan();

 private:
  absl::Status ChooseLabels();
  // The label of this column; null: it is none.
  const LabelChoice* LabelOf(size_t place) const;
  std::vector<Leak> Leaks() const;
  absl::Status TakeWishes();
  absl::Status CheckWeightForm(const std::string& values) const;
  absl::Status Take(const char* option, const std::vector<std::string>& names, ColumnRole role);
  // Why no feature is made of a column that nobody asked for; "" if one may be.
  std::string WhyIgnored(size_t place, const Leak& leak) const;
  ColumnChoice Choose(size_t place, const Leak& leak) const;
  // The columns that are parts of a column's fields.
  std::vector<std::string> PartsOf(const std::string& column) const;
  // These names, with those of vectors and objects replaced by their parts.
  std::vector<std::string> WithParts(const std::vector<std::string>& names) const;
  // Why a column is ignored whose fields have these parts.
  std::string PartsNote(size_t place, std::vector<std::string> parts) const;
  ColumnChoice DenseChoice(size_t place) const;
  ColumnChoice SlotChoice(size_t place) const;
  // The columns that are slots with one value a row.
  std::vector<size_t> SingleSlots() const;
  bool HoldsCodes(size_t place) const;
  bool IsAmount(size_t place) const;
  std::vector<std::string> TextsOf(size_t place, const std::vector<double>& numbers) const;
  bool IsSmallCount(size_t place) const;
  void HoldOut();
  bool HoldsBothClasses(const HeldOutRows& rows) const;
  bool HoldsBothClasses(const HeldOutRows& rows, const LabelChoice& label) const;
  absl::Status CheckFeatures() const;

  const TableProfile& profile_;
  const TableWishes& wishes_;
  TablePlan plan_;
  uint64_t rarer_ = 0;  // rows of the rarer label
  std::vector<std::optional<ColumnRole>> wished_;
};

absl::Status TablePlanner::ChooseLabels() {
  const std::vector<std::string> names = LabelNames(profile_.layout.columns, wishes_.label);
  if (names.size() < 2) {
    CISTERN_ASSIGN_OR_RETURN(plan_.label, ChooseLabel(profile_, wishes_.label, wishes_.positive,
                                                      wishes_.label_threshold));
    rarer_ = RowsOfRarerLabel(profile_, plan_.label);
    return absl::OkStatus();
  }
  if (!wishes_.positive.empty() || wishes_.label_threshold) {
    return WithOptions(absl::InvalidArgumentError(absl::StrCat(
                           profile_.path,
                           ": several labels must each be 1 or 0; positive texts and a threshold "
                           "need a single label: write columns of 1 and 0")),
                       {"label", wishes_.positive.empty() ? "label_threshold" : "positive"});
  }
  CISTERN_ASSIGN_OR_RETURN(plan_.heads, ChooseHeads(profile_, names));
  plan_.label = plan_.heads.front();
  for (const LabelChoice& head : plan_.heads) {
    rarer_ = std::max(rarer_, RowsOf(profile_, head).rarer());
  }
  return absl::OkStatus();
}

const LabelChoice* TablePlanner::LabelOf(size_t place) const {
  if (place == plan_.label.column) return &plan_.label;
  for (const LabelChoice& head : plan_.heads) {
    if (place == head.column) return &head;
  }
  return nullptr;
}

// Of several labels, a column that decides one of them.
std::vector<Leak> TablePlanner::Leaks() const {
  std::vector<Leak> leaks = FindLeaks(profile_, plan_.label);
  for (size_t i = 1; i < plan_.heads.size(); ++i) {
    const std::vector<Leak> more = FindLeaks(profile_, plan_.heads[i]);
    for (size_t c = 0; c < leaks.size(); ++c) {
      if (leaks[c].is_sure || more[c].why.empty()) continue;
      if (!leaks[c].why.empty() && !more[c].is_sure) continue;
      leaks[c] = more[c];
      leaks[c].why =
          absl::StrCat("of '", profile_.columns[plan_.heads[i].column].name, "': ", more[c].why);
    }
  }
  return leaks;
}

absl::Status TablePlanner::Take(const char* option, const std::vector<std::string>& names,
                                ColumnRole role) {
  CISTERN_ASSIGN_OR_RETURN(const std::vector<std::string> expanded, ExpandColumns(names));
  const std::vector<std::string>& columns = profile_.layout.columns;
  for (const std::string& name : expanded) {
    const auto found = std::find(columns.begin(), columns.end(), name);
    const auto error = [&](const std::string& why) {
      return WithOptions(absl::InvalidArgumentError(absl::StrCat(profile_.path, ": ", why)),
                         {option});
    };
    if (found == columns.end()) {
      return error(absl::StrCat("there is no column '", name, "'; the columns are ",
                                absl::StrJoin(columns, ", ")));
    }
    const size_t place = static_cast<size_t>(found - columns.begin());
    if (wished_[place] == role && role == ColumnRole::kSlot) continue;  // --sparse and --multi
    if (role != ColumnRole::kIgnored && !profile_.columns[place].unreadable.empty()) {
      return error(absl::StrCat("column '", name, "' ", profile_.columns[place].unreadable,
                                ", which is not read: flatten it"));
    }
    if (wished_[place] || LabelOf(place) != nullptr) {
      return error(absl::StrCat("column '", name, "' has another role already"));
    }
    if (role == ColumnRole::kWeight) {
      CISTERN_RETURN_IF_ERROR(WithOptions(
          AddContext(CheckSampleWeight(profile_.columns[place]), profile_.path), {option}));
      plan_.weight = place;
    }
    if (role == ColumnRole::kDense && !IsNumeric(profile_.columns[place].type)) {
      return error(absl::StrCat("column '", name, "' holds ", Word(profile_.columns[place].type),
                                ", not numbers"));
    }
    wished_[place] = role;
  }
  return absl::OkStatus();
}

// Refuses weights that count in a form that is not read for that.
absl::Status TablePlanner::CheckWeightForm(const std::string& values) const {
  const std::vector<std::string>& columns = profile_.layout.columns;
  const size_t place = std::find(columns.begin(), columns.end(), values) - columns.begin();
  const auto form = FindListForm(profile_, place, wishes_.separator);
  if (!form || !HasOtherWeights(profile_, place, *form)) return absl::OkStatus();
  return WithOptions(
      absl::InvalidArgumentError(absl::StrCat(
          profile_.path, ": column '", values,
          "': weights that count are written a:0.5|b:0.3, a=0.5|b=0.3 or a(0.5)|b(0.3): write them "
          "so")),
      {"key_weights"});
}

absl::Status TablePlanner::TakeWishes() {
  wished_.resize(profile_.columns.size());
  if (!wishes_.weight.empty()) {
    CISTERN_RETURN_IF_ERROR(Take("weight", {wishes_.weight}, ColumnRole::kWeight));
  }
  CISTERN_RETURN_IF_ERROR(Take("dense", WithParts(wishes_.dense), ColumnRole::kDense));
  CISTERN_RETURN_IF_ERROR(
      Take("sparse", WithMembers(wishes_.sparse, profile_.layout.columns), ColumnRole::kSlot));
  CISTERN_RETURN_IF_ERROR(Take("multi", wishes_.multi, ColumnRole::kSlot));
  for (const std::string& given : wishes_.key_weights) {
    const auto [values, weights] = KeyWeightColumns(given);
    CISTERN_RETURN_IF_ERROR(Take("key_weights", {values}, ColumnRole::kSlot));
    if (weights.empty()) {
      CISTERN_RETURN_IF_ERROR(CheckWeightForm(values));
      continue;
    }
    CISTERN_RETURN_IF_ERROR(Take("key_weights", {weights}, ColumnRole::kIgnored));
  }
  const std::vector<std::string>& columns = profile_.layout.columns;
  CISTERN_RETURN_IF_ERROR(
      Take("ignore", WithMembers(wishes_.ignore, columns), ColumnRole::kIgnored));
  // A list that is a slot, or left out, is no vector either.
  for (size_t i = 0; i < columns.size(); ++i) {
    if (wished_[i] != ColumnRole::kSlot && wished_[i] != ColumnRole::kIgnored) continue;
    for (const std::string& part : PartsOf(columns[i])) {
      const auto place = std::find(columns.begin(), columns.end(), part) - columns.begin();
      if (!wished_[place]) wished_[place] = ColumnRole::kIgnored;
    }
  }
  return absl::OkStatus();
}

// Whether neighbouring values of a number, which come back, have different click rates.
bool TablePlanner::HoldsCodes(size_t place) const {
  const ColumnProfile& column = profile_.columns[place];
  return Present(profile_, column) >= kRowsPerCode * column.distinct &&
         ValueEffect(profile_, plan_.label, place) >= kCodesFrom;
}

// Whether an integer of few values is better a quantity than a slot: its values say nothing of
// their own, and the rows of the rarer label are too few to learn a weight for each. More than
// kFewValues could number things, unless neighbours are about as frequent, or the name is that of a
// quantity. Of huge ones, several are one number to a float.
bool TablePlanner::IsSmallCount(size_t place) const {
  const ColumnProfile& column = profile_.columns[place];
  return column.type == ColumnType::kInteger && column.distinct > kMaxCategories &&
         !NumbersThings(column.name) &&
         (column.distinct <= kFewValues ||
          (column.distinct < kNumberedValues &&
           (IsAmountName(column.name) || NeighboursAreAsFrequent(profile_, place)))) &&
         column.max <= kMaxQuantity && column.min >= -kMaxQuantity &&
         rarer_ < kRarerPerValue * column.distinct &&
         ValueEffect(profile_, plan_.label, place) <= kQuantityUpTo;
}

// Whether an integer that hardly comes back measures something, such as cents or bytes.
bool TablePlanner::IsAmount(size_t place) const {
  const ColumnProfile& column = profile_.columns[place];
  if (column.type != ColumnType::kInteger || NumbersThings(column.name)) return false;
  if (column.max > kMaxQuantity || column.min < -kMaxQuantity) return false;
  return column.float_text || IsAmountName(column.name) ||
         LooksLikeAmounts(profile_, plan_.label, place);
}

ColumnChoice TablePlanner::DenseChoice(size_t place) const {
  const ColumnProfile& column = profile_.columns[place];
  NumberSpread spread = SpreadOf(profile_, place, false);
  ColumnChoice choice;
  choice.role = ColumnRole::kDense;
  const bool skewed = spread.skewness >= kMinSkew;
  const bool codes =
      spread.min < 0 && spread.min > kCodesBelow && column.type == ColumnType::kInteger;
  choice.log1p = skewed && (spread.min >= 0 || codes);
  if (choice.log1p) {
    // ln(1 + x) of rates such as 0.0015 is as skewed as they are.
    const NumberSpread logs = SpreadOf(profile_, place, true);
    choice.log1p = logs.log_deviation >= kMinLogDeviation || logs.log_mean == 0;
    if (choice.log1p) spread = logs;
  }
  // Numbers that are mostly below 1 would share two or three buckets.
  choice.bucket = !BeyondBuckets(spread) && rarer_ >= kRarerForBuckets &&
                  (column.type == ColumnType::kInteger || (choice.log1p && spread.mean >= 3));
  choice.note = choice.log1p ? "log1p" : "standardized";
  const double range = column.max - column.min;
  if (spread.low) {
    // Outliers differ from the numbers at the bounds in their bucket, but rates have hardly any. A
    // handful of outliers tells less than the other buckets cost where rows are few.
    const bool are_learned = rarer_ >= kRarerForBuckets || spread.outliers >= kMinOutliers ||
                             column.distinct <= kFewValues;
    choice.bucket = choice.bucket || (are_learned && *spread.high - *spread.low >= kMinBuckets);
    choice.bounds = {*spread.low, *spread.high};
    absl::StrAppendFormat(&choice.note, " within %.4g and %.4g (%s such as %g)", *spread.low,
                          *spread.high, spread.has_sentinel() ? "codes" : "outliers",
                          spread.farthest);
    choice.none = TextsOf(place, spread.sentinels);
  } else if (range > 0 && std::isfinite(3 * range)) {
    choice.bounds = {column.min - range, column.max + range};
  }
  // A text that stands for no number is a value of its own among buckets.
  if (column.number_form && !column.number_form->none.empty()) choice.bucket = true;
  // Codes such as 12.5 and 13.5.
  choice.values = !choice.bucket && !column.number_form && HoldsCodes(place);
  if (choice.bucket) absl::StrAppend(&choice.note, ", and a slot of buckets");
  if (choice.values) {
    absl::StrAppend(&choice.note, ", and a slot of its values, whose click rates jump");
  }
  const bool is_missed = column.missing >= kMinMissing || !choice.none.empty();
  choice.tells_missing = is_missed && !choice.bucket && !choice.values;
  // Buckets bend the effect of a number already.
  if (!choice.bucket && !choice.values)
    choice.pieces = PiecesOf(profile_, place, PiecesFor(profile_, rarer_));
  if (!choice.pieces.empty()) {
    absl::StrAppend(&choice.note, ", and ", choice.pieces.size() - 1, " pieces");
  }
  if (choice.tells_missing) absl::StrAppend(&choice.note, ", and whether it is missing");
  if (column.number_form) absl::StrAppend(&choice.note, "; ", NoteOf(*column.number_form));
  if (column.infinite > 0) {
    absl::StrAppend(&choice.note, "; ", column.infinite, " infinite values count as missing");
  }
  return choice;
}

// How numbers are written in the sampled rows, and how other programs may write them.
std::vector<std::string> TablePlanner::TextsOf(size_t place,
                                               const std::vector<double>& numbers) const {
  std::set<std::string> texts;
  for (const double number : numbers) {
    if (std::floor(number) != number || std::abs(number) > kMaxQuantity) continue;
    texts.insert(absl::StrFormat("%.0f", number));
    texts.insert(absl::StrFormat("%.1f", number));
  }
  for (const std::vector<std::string>& row : profile_.sample) {
    double x = 0;
    const bool is_one = ReadNumber(row[place], &x) == NumberKind::kFinite &&
                        std::count(numbers.begin(), numbers.end(), x) > 0;
    if (is_one) texts.insert(row[place]);
  }
  return {texts.begin(), texts.end()};
}

ColumnChoice TablePlanner::SlotChoice(size_t place) const {
  ColumnChoice choice;
  choice.role = ColumnRole::kSlot;
  const ColumnProfile& column = profile_.columns[place];
  const std::vector<std::string>& lists = profile_.layout.lists;
  const auto holds = [&](const std::vector<std::string>& names) {
    return std::find(names.begin(), names.end(), column.name) != names.end();
  };
  const auto weighted = [&](const std::string& given) {
    return KeyWeightColumns(given).first == column.name;
  };
  const auto weights =
      std::find_if(wishes_.key_weights.begin(), wishes_.key_weights.end(), weighted);
  const bool wished = holds(wishes_.multi) || weights != wishes_.key_weights.end();
  if (holds(lists)) {
    choice.list = ConvertOptions::ListForm{kListSeparator};
    choice.note = "lists";
  } else if (wished || column.type == ColumnType::kText) {
    choice.list = FindListForm(profile_, place, wished ? wishes_.separator : '\0');
    if (wished && !choice.list) {
      choice.list = ConvertOptions::ListForm{};
      if (wishes_.separator != 0) choice.list->separator = wishes_.separator;
    }
    choice.note = choice.list ? NoteOf(*choice.list) : TextNote(profile_, place);
  }
  if (choice.note.empty() && !choice.list) choice.note = SpellingNote(profile_, place);
  if (weights == wishes_.key_weights.end()) return choice;
  const std::string of = KeyWeightColumns(*weights).second;
  choice.list->weights = false;
  choice.note = absl::StrCat(NoteOf(*choice.list), "; each counts by its weight",
                             of.empty() ? "" : absl::StrCat(", the number in '", of, "'"));
  choice.list->weights = of.empty();
  if (of.empty()) choice.list->weight_mark = FindWeightMark(profile_, place, *choice.list);
  return choice;
}

std::vector<size_t> TablePlanner::SingleSlots() const {
  std::vector<size_t> slots;
  for (size_t place = 0; place < plan_.columns.size(); ++place) {
    const ColumnChoice& choice = plan_.columns[place];
    if (choice.role == ColumnRole::kSlot && !choice.list) slots.push_back(place);
  }
  return slots;
}

std::vector<std::string> TablePlanner::PartsOf(const std::string& column) const {
  std::vector<std::string> parts;
  const TableLayout& layout = profile_.layout;
  if (layout.parts.empty()) return parts;
  std::vector<std::string> own = layout.columns;
  own.resize(own.size() - layout.parts.size());
  const Wholes wholes(own);
  for (const std::string& name : layout.parts) {
    const size_t whole = wholes.Of(name);
    if (whole < own.size() && own[whole] == column) parts.push_back(name);
  }
  return parts;
}

std::string TablePlanner::PartsNote(size_t place, std::vector<std::string> parts) const {
  constexpr size_t kPartsShown = 4;
  const ColumnProfile& column = profile_.columns[place];
  std::string note;
  if (column.has_members) {
    const size_t more = parts.size() - std::min(parts.size(), kPartsShown);
    parts.resize(parts.size() - more);
    note = absl::StrCat("objects, whose members are read as ", absl::StrJoin(parts, ", "),
                        more == 0 ? "" : absl::StrCat(" and ", more, " more"));
  } else {
    note = absl::StrCat("lists, which are read as ", parts.front(), " to ", parts.back());
  }
  if (column.odd == 0) return note;
  return absl::StrCat(
      note, "; ", column.odd,
      column.odd == 1 ? " row, number " : " rows, the first of them number ", column.first_odd,
      column.has_members
          ? ", without an object: all members count as missing there"
          : ", with another number of them: there, more are left out, and fewer count as missing");
}

std::vector<std::string> TablePlanner::WithParts(const std::vector<std::string>& names) const {
  std::vector<std::string> all;
  for (const std::string& name : names) {
    std::vector<std::string> parts = PartsOf(name);
    if (parts.empty()) parts = WithMembers({name}, profile_.layout.columns);
    all.insert(all.end(), parts.begin(), parts.end());
  }
  return all;
}

std::string TablePlanner::WhyIgnored(size_t place, const Leak& leak) const {
  const ColumnProfile& column = profile_.columns[place];
  for (const std::string& given : wishes_.key_weights) {
    const auto [values, weights] = KeyWeightColumns(given);
    if (weights == column.name) return absl::StrCat("the weights of the values of '", values, "'");
  }
  if (wished_[place]) return "left out on request";
  if (!column.unreadable.empty()) return absl::StrCat(column.unreadable, ", which is not read");
  if (column.name.empty()) return "has no name";
  if (column.type == ColumnType::kEmpty) return "empty";
  if (column.distinct == 1 && column.missing == 0) return "the same in every row";
  const std::vector<std::string> parts = PartsOf(column.name);
  if (!parts.empty()) return PartsNote(place, parts);
  if (std::string note = PartsNoteOf(column); !note.empty()) return note;
  return leak.is_sure ? absl::StrCat("LEAK? ", leak.why) : "";
}

ColumnChoice TablePlanner::Choose(size_t place, const Leak& leak) const {
  const ColumnProfile& column = profile_.columns[place];
  const auto ignored = [](std::string note) {
    ColumnChoice choice;
    choice.note = std::move(note);
    return choice;
  };
  if (const LabelChoice* const chosen = LabelOf(place)) {
    return {.role = ColumnRole::kLabel, .note = chosen->note};
  }
  if (wished_[place] == ColumnRole::kWeight) {
    return {.role = ColumnRole::kWeight, .note = "of the sample: in the loss and in all metrics"};
  }
  if (wished_[place] == ColumnRole::kDense) return DenseChoice(place);
  if (wished_[place] == ColumnRole::kSlot) return SlotChoice(place);
  if (std::string why = WhyIgnored(place, leak); !why.empty()) return ignored(std::move(why));
  if (IsTimeColumn(column)) {
    ColumnChoice time = {.role = ColumnRole::kTime, .note = "time: not a feature"};
    if (column.time_form.is_ambiguous) {
      absl::StrAppend(&time.note,
                      "; day and month could change places, so no rows are held out by "
                      "it: write 2024-05-31");
    }
    return time;
  }
  if (LooksLikeSampleWeight(column)) {
    return ignored(
        "looks like a weight of the sample: name it as the weight to use it; if it is a feature, "
        "name it as dense");
  }
  if (IsQueryId(profile_, column)) {
    return ignored(
        "looks like the id of a query or session, whose values do not come back; if they do, name "
        "it as sparse");
  }
  if (column.type == ColumnType::kText && AreShortened(profile_, place)) {
    return ignored("arrays that NumPy has shortened (...): write them whole, as x.tolist() does");
  }
  if (NumbersRows(column, profile_.rows)) return ignored("numbers the rows, by its name");
  // Before ids: histories, for example, are a new text in most rows.
  if (const ColumnChoice slot = SlotChoice(place); slot.list) {
    if (!HoldsVectors(profile_, place, *slot.list)) return slot;
    return ignored("lists of numbers with a fraction; if they are values, name it as sparse");
  }
  const uint64_t present = Present(profile_, column);
  const bool is_new =
      static_cast<double>(column.distinct) >= kNewValueShare * static_cast<double>(present);
  // Integers that are written as floats are amounts, unless they have the name of an id.
  const bool is_amount = column.type == ColumnType::kNumber || IsAmount(place);
  if (is_new && present >= kRowsForIds && !is_amount) {
    const std::string note = column.type == ColumnType::kText ? TextNote(profile_, place) : "";
    if (!note.empty()) return ignored(note);
    return ignored(
        absl::StrCat("an id: a new value in ", Percent(column.distinct, present), " of rows"));
  }
  if (IsSlot(profile_, place)) {
    return IsSmallCount(place) ? DenseChoice(place) : SlotChoice(place);
  }
  const bool is_id =
      column.type == ColumnType::kInteger && (LooksLikeIds(profile_, place) || HoldsCodes(place));
  if (!is_id) return DenseChoice(place);
  ColumnChoice ids = SlotChoice(place);
  ids.note = "integers that look like ids; if they are quantities, name it as dense";
  return ids;
}

bool TablePlanner::HoldsBothClasses(const HeldOutRows& rows) const {
  if (plan_.heads.empty()) return HoldsBothClasses(rows, plan_.label);
  return std::all_of(plan_.heads.begin(), plan_.heads.end(),
                     [&](const LabelChoice& head) { return HoldsBothClasses(rows, head); });
}

bool TablePlanner::HoldsBothClasses(const HeldOutRows& rows, const LabelChoice& label) const {
  bool seen[2][2] = {};  // by part, by class
  for (const std::vector<std::string>& row : profile_.sample) {
    const bool positive = label.IsPositive(row[label.column]);
    seen[*TimeOrder(row[*rows.time_column], rows.time_form) >= rows.since][positive] = true;
  }
  return seen[0][0] && seen[0][1] && seen[1][0] && seen[1][1];
}

// Holds out the latest rows if there is a column of times. One that is not in every row, has too
// few values to cut off a tenth, or leaves a part with one class only is of no use.
void TablePlanner::HoldOut() {
  for (size_t place = 0; place < plan_.columns.size(); ++place) {
    const ColumnProfile& column = profile_.columns[place];
    if (plan_.columns[place].role != ColumnRole::kTime || column.time_form.is_ambiguous) continue;
    // Times of a person or a thing, and not of the row.
    if (HasWord(column.name, {"birth", "birthday", "birthdate", "born", "dob", "signup", "joined",
                              "registered", "registration", "released", "release", "hired",
                              "founded", "expires", "expiry", "expiration"})) {
      continue;
    }
    std::vector<int64_t> times;
    for (const std::vector<std::string>& row : profile_.sample) {
      const std::optional<int64_t> time = TimeOrder(row[place], column.time_form);
      if (time) times.push_back(*time);
    }
    if (times.size() < profile_.sample.size() || profile_.columns[place].missing > 0) continue;
    std::sort(times.begin(), times.end());
    double best = 1;
    HeldOutRows rows;
    rows.time_column = place;
    rows.time_form = column.time_form;
    const double count = static_cast<double>(times.size());
    for (size_t i = 1; i < times.size(); ++i) {
      if (times[i] == times[i - 1]) continue;
      const double share = (count - static_cast<double>(i)) / count;
      if (std::abs(share - kHeldOutShare) >= std::abs(best - kHeldOutShare)) continue;
      best = share;
      rows.since = times[i];
    }
    if (best < kMinHeldOut || best > kMaxHeldOut || !HoldsBothClasses(rows)) continue;
    rows.one_in = std::max<uint64_t>(1, static_cast<uint64_t>(std::round(best / kHeldOutShare)));
    plan_.held_out = rows;
    plan_.columns[place].note = rows.one_in == 1
                                    ? "time: not a feature; the latest rows are held out"
                                    : absl::StrCat("time: not a feature; one in ", rows.one_in,
                                                   " of the latest rows is held out");
    return;
  }
}

absl::Status TablePlanner::CheckFeatures() const {
  if (plan_.slots + plan_.dense > 0) return absl::OkStatus();
  std::vector<std::string> why;
  for (size_t i = 0; i < plan_.columns.size(); ++i) {
    if (LabelOf(i) != nullptr) continue;
    why.push_back(absl::StrCat("'", profile_.columns[i].name, "' (", plan_.columns[i].note, ")"));
  }
  return WithOptions(absl::InvalidArgumentError(
                         absl::StrCat(profile_.path, ": no column is left as a feature: ",
                                      absl::StrJoin(why, ", "), "; name some as sparse or dense")),
                     {"sparse", "dense"});
}

absl::StatusOr<TablePlan> TablePlanner::Plan() {
  CISTERN_RETURN_IF_ERROR(ChooseLabels());
  CISTERN_RETURN_IF_ERROR(TakeWishes());
  const std::vector<Leak> leaks = Leaks();
  for (size_t i = 0; i < profile_.columns.size(); ++i) {
    const ColumnProfile& column = profile_.columns[i];
    plan_.columns.push_back(Choose(i, leaks[i]));
    const ColumnRole role = plan_.columns.back().role;
    std::string& note = plan_.columns.back().note;
    const bool is_feature = role == ColumnRole::kSlot || role == ColumnRole::kDense;
    if (is_feature && !wished_[i] && !leaks[i].why.empty()) {
      absl::StrAppend(&note, note.empty() ? "" : "; ", "LEAK? ", leaks[i].why,
                      ": if it is known only after the label, name it to be ignored");
    }
    if (column.odd_times == 0) continue;
    absl::StrAppend(&note, note.empty() ? "" : "; ", "times in all but ", column.odd_times,
                    column.odd_times == 1 ? " row, which has '" : " rows, of which one has '",
                    ShownText(column.odd_time, 40),
                    "', so it is text: write a time there, or nothing");
  }
  for (const ColumnChoice& choice : plan_.columns) plan_.several_values |= choice.list.has_value();
  plan_.pair_gain = PairGain(profile_, plan_.label, SingleSlots());
  HoldOut();
  plan_.held_out.by_content = RowsRepeat(profile_);
  AddSlotIfNone(rarer_ < kRarerForBuckets, &plan_);
  WriteOptions(profile_, wishes_, &plan_);
  CISTERN_RETURN_IF_ERROR(CheckFeatures());
  return plan_;
}

}  // namespace

const char* Word(ColumnRole role) {
  switch (role) {
    case ColumnRole::kLabel:
      return "label";
    case ColumnRole::kWeight:
      return "weight";
    case ColumnRole::kSlot:
      return "slot";
    case ColumnRole::kDense:
      return "dense";
    case ColumnRole::kTime:
      return "time";
    case ColumnRole::kIgnored:
      break;
  }
  return "ignored";
}

void WishFeatureLines(TableLayout* layout, TableWishes* wishes) {
  if (!layout->has_feature_lines()) return;
  if (!wishes->key_weights.empty()) layout->values = FeatureValues::kWeights;
  const std::vector<std::string> features(layout->columns.begin() + 1, layout->columns.end());
  if (wishes->label.empty()) wishes->label = layout->columns.front();
  wishes->multi = features;
  wishes->separator = ' ';
  if (layout->values == FeatureValues::kWeights) wishes->key_weights = features;
}

absl::StatusOr<TablePlan> PlanTable(const TableProfile& profile, const TableWishes& wishes) {
  return TablePlanner(profile, wishes).Plan();
}

}  // namespace cistern::data
