#include "worker/data/prepare/table_plan.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "worker/data/prepare/column_list.h"
#include "worker/data/prepare/id_numbers.h"
#include "worker/data/prepare/leak_check.h"
#include "worker/data/prepare/table_options.h"
#include "worker/data/prepare/text_note.h"
#include "worker/data/recipe/parquet_table.h"

namespace cistern {
namespace {

constexpr uint64_t kFewValues = 50;         // an integer with at most as many values is a slot
constexpr uint64_t kRowsPerNumber = 50;     // likewise one that fills its range, if rows suffice
constexpr uint64_t kNumberedValues = 1000;  // one that fills a range of so many is a numbering
constexpr double kFillLeast = 0.5;          // share of a range
constexpr double kNewValueShare = 0.9;      // of rows: an id
constexpr uint64_t kRowsForIds = 50;        // in fewer rows everything is new
constexpr double kSkewLeast = 2;
constexpr double kCodesBelow = -10;     // negative numbers above it are codes, such as -1
constexpr double kQuantityMost = 1e15;  // the last bucket; larger integers are ids
constexpr double kHeldOutShare = 0.1, kHeldOutLeast = 0.03, kHeldOutMost = 0.3;
constexpr uint64_t kHeldOutOneIn = 10;

// The words of a name: "userId" and "user_id" are user, id.
std::vector<std::string> WordsOf(const std::string& name) {
  std::string spaced;
  for (size_t i = 0; i < name.size(); ++i) {
    const bool starts = i > 0 && absl::ascii_isupper(name[i]) && absl::ascii_islower(name[i - 1]);
    if (starts) spaced.push_back(' ');
    spaced.push_back(absl::ascii_isalnum(name[i]) ? absl::ascii_tolower(name[i]) : ' ');
  }
  return absl::StrSplit(spaced, ' ', absl::SkipEmpty());
}

bool HasWord(const std::string& name, std::initializer_list<absl::string_view> words) {
  for (const std::string& word : WordsOf(name)) {
    if (std::count(words.begin(), words.end(), word) > 0) return true;
  }
  return false;
}

// Integers with such a name number things; they do not measure.
bool NumbersThings(const std::string& name) {
  return HasWord(name,
                 {"id",      "ids",   "uid",      "userid",   "itemid",     "user",      "item",
                  "product", "goods", "shop",     "store",    "brand",      "category",  "cate",
                  "cat",     "class", "type",     "code",     "zip",        "zipcode",   "postcode",
                  "city",    "state", "country",  "region",   "site",       "app",       "device",
                  "ad",      "adid",  "campaign", "creative", "advertiser", "publisher", "channel",
                  "page",    "sku",   "article",  "movie",    "song",       "customer"});
}

bool IsNumeric(ColumnType type) {
  return type == ColumnType::kInteger || type == ColumnType::kNumber;
}

// Numbers that a column of times holds: seconds, milliseconds or microseconds since 1970, or digits
// YYYYMMDD, YYYYMMDDhh, YYMMDDhh.
bool IsTime(const ColumnProfile& column) {
  if (column.type == ColumnType::kTime) return true;
  if (column.type != ColumnType::kInteger || column.distinct < 2) return false;
  if (!HasWord(column.name, {"time", "timestamp", "ts", "date", "datetime", "day", "hour",
                             "unixtime", "dt", "created", "updated", "at", "start", "end"})) {
    return false;
  }
  const auto within = [&](double low, double high) {
    return column.min >= low && column.max <= high;
  };
  return within(3e8, 2.2e9) || within(3e11, 2.2e12) || within(3e14, 2.2e15) ||
         within(19000101, 21001231) || within(1900010100, 2100123123) || within(7010100, 99123123);
}

uint64_t Present(const TableProfile& profile, const ColumnProfile& column) {
  return profile.rows - column.missing;
}

bool BeyondBuckets(const ColumnProfile& column) {
  return column.max > kQuantityMost || column.min < -kQuantityMost;
}

// A slot if each value of an integer means something of its own.
bool IsSlot(const TableProfile& profile, const ColumnProfile& column) {
  if (column.type == ColumnType::kText) return true;
  if (column.type != ColumnType::kInteger) return false;
  if (column.distinct <= kFewValues || NumbersThings(column.name)) return true;
  if (BeyondBuckets(column)) return true;
  const double fill = static_cast<double>(column.distinct) / (column.max - column.min + 1);
  if (fill < kFillLeast) return false;
  return column.distinct >= kNumberedValues ||
         Present(profile, column) >= kRowsPerNumber * column.distinct;
}

// The separator of a column that holds several values, or 0.
char SeparatorOf(const TableProfile& profile, size_t column) {
  for (const char separator : {'|', ';'}) {
    size_t present = 0, several = 0;
    std::map<std::string, size_t> parts, wholes;
    for (const std::vector<std::string>& row : profile.sample) {
      if (row[column].empty()) continue;
      ++present;
      ++wholes[row[column]];
      several += absl::StrContains(row[column], separator);
      for (const absl::string_view part : absl::StrSplit(row[column], separator)) {
        ++parts[std::string(part)];
      }
    }
    // Several values recombine: fewer parts than texts.
    if (present > 0 && 5 * several >= present && parts.size() < wholes.size()) return separator;
  }
  return 0;
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
  absl::Status TakeWishes();
  absl::Status Take(const char* flag, const std::vector<std::string>& names, ColumnRole role);
  ColumnChoice Choose(size_t place, const std::string& leak) const;
  ColumnChoice DenseChoice(const ColumnProfile& column) const;
  ColumnChoice SlotChoice(size_t place) const;
  void ChooseSeparator();
  void HoldOut();
  bool HoldsBothClasses(const HeldOutRows& rows) const;
  absl::Status CheckFeatures() const;

  const TableProfile& profile_;
  const TableWishes& wishes_;
  TablePlan plan_;
  std::vector<std::optional<ColumnRole>> wished_;
};

absl::Status TablePlanner::Take(const char* flag, const std::vector<std::string>& names,
                                ColumnRole role) {
  CISTERN_ASSIGN_OR_RETURN(const std::vector<std::string> expanded, ExpandColumns(names));
  const std::vector<std::string>& columns = profile_.layout.columns;
  for (const std::string& name : expanded) {
    const auto found = std::find(columns.begin(), columns.end(), name);
    const auto error = [&](const std::string& why) {
      return absl::InvalidArgumentError(absl::StrCat(profile_.path, ": ", flag, ": ", why));
    };
    if (found == columns.end()) {
      return error(absl::StrCat("there is no column '", name, "'; the columns are ",
                                absl::StrJoin(columns, ", ")));
    }
    const size_t place = static_cast<size_t>(found - columns.begin());
    if (wished_[place] || place == plan_.label.column) {
      return error(absl::StrCat("column '", name, "' has another role already"));
    }
    if (role == ColumnRole::kDense && !IsNumeric(profile_.columns[place].type)) {
      return error(absl::StrCat("column '", name, "' holds ", Word(profile_.columns[place].type),
                                ", not numbers"));
    }
    wished_[place] = role;
  }
  return absl::OkStatus();
}

absl::Status TablePlanner::TakeWishes() {
  wished_.resize(profile_.columns.size());
  CISTERN_RETURN_IF_ERROR(Take("--dense", wishes_.dense, ColumnRole::kDense));
  CISTERN_RETURN_IF_ERROR(Take("--sparse", wishes_.sparse, ColumnRole::kSlot));
  return Take("--ignore", wishes_.ignore, ColumnRole::kIgnored);
}

ColumnChoice TablePlanner::DenseChoice(const ColumnProfile& column) const {
  ColumnChoice choice;
  choice.role = ColumnRole::kDense;
  const bool skewed = column.skewness >= kSkewLeast;
  const bool codes =
      column.min < 0 && column.min > kCodesBelow && column.type == ColumnType::kInteger;
  choice.log1p = skewed && (column.min >= 0 || codes);
  // Numbers that are mostly below 1 would share two or three buckets.
  choice.bucket = !BeyondBuckets(column) &&
                  (column.type == ColumnType::kInteger || (choice.log1p && column.mean >= 3));
  choice.note = choice.log1p ? "log1p" : "standardized";
  if (choice.bucket) absl::StrAppend(&choice.note, ", and a slot of buckets");
  return choice;
}

ColumnChoice TablePlanner::SlotChoice(size_t place) const {
  ColumnChoice choice;
  choice.role = ColumnRole::kSlot;
  const ColumnProfile& column = profile_.columns[place];
  const std::vector<std::string>& lists = profile_.layout.lists;
  if (std::find(lists.begin(), lists.end(), column.name) != lists.end()) {
    choice.separator = kListSeparator;
    choice.note = "lists";
  } else if (column.type == ColumnType::kText) {
    choice.separator = SeparatorOf(profile_, place);
    if (choice.separator != 0) {
      choice.note = absl::StrCat("several values, separated by ", std::string(1, choice.separator));
    } else {
      choice.note = TextNote(profile_, place);
    }
  }
  return choice;
}

ColumnChoice TablePlanner::Choose(size_t place, const std::string& leak) const {
  const ColumnProfile& column = profile_.columns[place];
  const auto ignored = [](std::string note) {
    return ColumnChoice{ColumnRole::kIgnored, false, false, 0, std::move(note)};
  };
  if (place == plan_.label.column) {
    return {ColumnRole::kLabel, false, false, 0, plan_.label.note};
  }
  if (wished_[place] == ColumnRole::kDense) return DenseChoice(column);
  if (wished_[place] == ColumnRole::kSlot) return SlotChoice(place);
  if (wished_[place]) return ignored("by --ignore");
  if (column.name.empty()) return ignored("has no name");
  if (column.type == ColumnType::kEmpty) return ignored("empty");
  if (column.distinct == 1 && column.missing == 0) return ignored("the same in every row");
  if (!leak.empty()) return ignored(absl::StrCat("LEAK? ", leak));
  if (IsTime(column)) return {ColumnRole::kTime, false, false, 0, "time: not a feature"};
  // Before ids: histories, for example, are a new text in most rows.
  if (const ColumnChoice slot = SlotChoice(place); slot.separator != 0) return slot;
  const uint64_t present = Present(profile_, column);
  const bool is_new =
      static_cast<double>(column.distinct) >= kNewValueShare * static_cast<double>(present);
  if (is_new && present >= kRowsForIds && column.type != ColumnType::kNumber) {
    const std::string note = column.type == ColumnType::kText ? TextNote(profile_, place) : "";
    if (!note.empty()) return ignored(note);
    return ignored(
        absl::StrCat("an id: a new value in ", Percent(column.distinct, present), " of rows"));
  }
  if (IsSlot(profile_, column)) return SlotChoice(place);
  if (column.type != ColumnType::kInteger || !LooksLikeIds(profile_, place)) {
    return DenseChoice(column);
  }
  ColumnChoice ids = SlotChoice(place);
  ids.note = "integers that look like ids; if they are quantities: --dense COLUMN";
  return ids;
}

// A conversion knows one separator: the more frequent one wins.
void TablePlanner::ChooseSeparator() {
  const auto count = [this](char separator) {
    return std::count_if(plan_.columns.begin(), plan_.columns.end(),
                         [&](const ColumnChoice& c) { return c.separator == separator; });
  };
  const char separator = count(';') > count('|') ? ';' : '|';
  for (ColumnChoice& choice : plan_.columns) {
    if (choice.separator == 0) continue;
    if (choice.separator != separator) {
      choice.separator = 0;
      choice.note = "several values are read as one: another column has another separator";
    }
    plan_.several_values |= choice.separator != 0;
  }
  plan_.options.separator = separator;
}

bool TablePlanner::HoldsBothClasses(const HeldOutRows& rows) const {
  bool seen[2][2] = {};  // by part, by class
  for (const std::vector<std::string>& row : profile_.sample) {
    const bool positive = plan_.label.IsPositive(row[plan_.label.column]);
    seen[*TimeOrder(row[*rows.time_column]) >= rows.since][positive] = true;
  }
  return seen[0][0] && seen[0][1] && seen[1][0] && seen[1][1];
}

// Holds out the latest rows if there is a column of times. One that is not in every row, has too
// few values to cut off a tenth, or leaves a part with one class only is of no use.
void TablePlanner::HoldOut() {
  for (size_t place = 0; place < plan_.columns.size(); ++place) {
    if (plan_.columns[place].role != ColumnRole::kTime) continue;
    std::vector<int64_t> times;
    for (const std::vector<std::string>& row : profile_.sample) {
      const std::optional<int64_t> time = TimeOrder(row[place]);
      if (time) times.push_back(*time);
    }
    if (times.size() < profile_.sample.size() || profile_.columns[place].missing > 0) continue;
    std::sort(times.begin(), times.end());
    double best = 1;
    HeldOutRows rows;
    rows.time_column = place;
    const double count = static_cast<double>(times.size());
    for (size_t i = 1; i < times.size(); ++i) {
      if (times[i] == times[i - 1]) continue;
      const double share = (count - static_cast<double>(i)) / count;
      if (std::abs(share - kHeldOutShare) >= std::abs(best - kHeldOutShare)) continue;
      best = share;
      rows.since = times[i];
    }
    if (best < kHeldOutLeast || best > kHeldOutMost || !HoldsBothClasses(rows)) continue;
    plan_.held_out = rows;
    plan_.columns[place].note = "time: not a feature; the latest rows are held out";
    return;
  }
}

absl::Status TablePlanner::CheckFeatures() const {
  if (plan_.slots + plan_.dense > 0) return absl::OkStatus();
  std::vector<std::string> why;
  for (size_t i = 0; i < plan_.columns.size(); ++i) {
    if (i == plan_.label.column) continue;
    why.push_back(absl::StrCat("'", profile_.columns[i].name, "' (", plan_.columns[i].note, ")"));
  }
  return absl::InvalidArgumentError(
      absl::StrCat(profile_.path, ": no column is left as a feature: ", absl::StrJoin(why, ", "),
                   "; name some with --sparse or --dense"));
}

absl::StatusOr<TablePlan> TablePlanner::Plan() {
  CISTERN_ASSIGN_OR_RETURN(plan_.label, ChooseLabel(profile_, wishes_.label, wishes_.positive));
  CISTERN_RETURN_IF_ERROR(TakeWishes());
  const std::vector<std::string> leaks = FindLeaks(profile_, plan_.label);
  for (size_t i = 0; i < profile_.columns.size(); ++i) plan_.columns.push_back(Choose(i, leaks[i]));
  ChooseSeparator();
  HoldOut();
  // A model has at least one slot: numbers alone are cut into buckets too.
  const bool has_slot =
      std::any_of(plan_.columns.begin(), plan_.columns.end(),
                  [](const ColumnChoice& c) { return c.role == ColumnRole::kSlot || c.bucket; });
  for (ColumnChoice& choice : plan_.columns) {
    if (has_slot || choice.role != ColumnRole::kDense) continue;
    choice.bucket = true;
    absl::StrAppend(&choice.note, ", and a slot of buckets");
  }
  WriteOptions(profile_, wishes_, &plan_);
  CISTERN_RETURN_IF_ERROR(CheckFeatures());
  return plan_;
}

}  // namespace

const char* Word(ColumnRole role) {
  switch (role) {
    case ColumnRole::kLabel:
      return "label";
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

bool HeldOutRows::Contains(uint64_t row, const std::vector<absl::string_view>& fields) const {
  if (time_column) return TimeOrder(fields[*time_column]).value_or(since - 1) >= since;
  // SplitMix64 (Steele et al. 2014): neighbours are independent of each other.
  uint64_t hash = row + 0x9E3779B97F4A7C15;
  hash = (hash ^ hash >> 30) * 0xBF58476D1CE4E5B9;
  hash = (hash ^ hash >> 27) * 0x94D049BB133111EB;
  return (hash ^ hash >> 31) % kHeldOutOneIn == 0;
}

absl::StatusOr<TablePlan> PlanTable(const TableProfile& profile, const TableWishes& wishes) {
  return TablePlanner(profile, wishes).Plan();
}

}  // namespace cistern
