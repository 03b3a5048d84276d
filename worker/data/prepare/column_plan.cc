#include "worker/data/prepare/column_plan.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/shown_text.h"
#include "worker/data/prepare/column_list.h"

namespace cistern::data {
namespace {

// Turns the lists of the options, with ranges expanded, into column indices.
class Planner {
 public:
  Planner(const ConvertOptions& options, const std::vector<std::string>& columns)
      : options_(options), columns_(columns) {
    for (size_t i = 0; i < columns.size(); ++i) places_[columns[i]] = i;
  }
  absl::StatusOr<ColumnPlan> Plan();

 private:
  absl::StatusOr<std::vector<size_t>> Find(const char* option,
                                           const std::vector<std::string>& names);
  absl::Status FindAll();
  void DefaultDense();
  absl::Status ChooseSlots();
  absl::Status FindCrosses();
  absl::Status FindShares();
  absl::Status FindKeyWeights();
  absl::Status WeighFeatures();
  absl::Status CheckCross(const std::string& given, const std::vector<size_t>& cross) const;
  absl::Status CheckLabels() const;
  absl::Status MarkSlots(ColumnPlan* plan) const;
  absl::Status NoColumn(const char* option, const std::string& name) const;
  std::string Name(size_t column) const { return absl::StrCat("'", columns_[column], "'"); }

  const ConvertOptions& options_;
  const std::vector<std::string>& columns_;
  std::map<std::string, size_t> places_;
  std::vector<size_t> label_, weight_, dense_, sparse_;
  std::set<size_t> bucket_, ignore_, multi_;
  std::map<size_t, std::optional<size_t>> key_weights_;  // by column: that of its weights, if any
  std::set<size_t> key_weight_columns_;
  std::vector<std::vector<size_t>> crosses_;
  std::set<size_t> crossed_;         // columns of crosses
  std::map<size_t, size_t> shares_;  // by column: the one whose keys it has
  bool ignore_rest_ = false;
};

absl::StatusOr<std::vector<size_t>> Planner::Find(const char* option,
                                                  const std::vector<std::string>& names) {
  CISTERN_ASSIGN_OR_RETURN(const std::vector<std::string> expanded, ExpandColumns(names));
  std::vector<size_t> found;
  for (const std::string& name : expanded) {
    const auto place = places_.find(name);
    if (place == places_.end()) return NoColumn(option, name);
    found.push_back(place->second);
  }
  return found;
}

// The option for a header line that the delimiter does not split, with a delimiter that would.
std::string DelimiterFor(const std::string& line) {
  const std::pair<char, const char*> others[] = {
      {'\t', "tab"}, {';', "';'"}, {'|', "'|'"}, {',', "','"}, {' ', "space"}};
  for (const auto& [delimiter, word] : others) {
    if (absl::StrContains(line, delimiter)) return absl::StrCat("delimiter=", word);
  }
  return "delimiter";
}

// An error that lists the columns and hints at the likely mistake.
absl::Status Planner::NoColumn(const char* option, const std::string& name) const {
  constexpr size_t kMaxNames = 60, kMaxNameBytes = 40;
  std::vector<std::string> shown;
  bool holds_number = false;
  std::string cure;
  for (const std::string& column : columns_) {
    double ignored = 0;
    holds_number |= absl::SimpleAtod(column, &ignored);
    if (absl::StripAsciiWhitespace(column) == name) {
      cure = absl::StrCat(": '", column, "' contains a space, which is part of the name");
    }
    if (shown.size() < kMaxNames) {
      shown.push_back(ShownText(column, kMaxNameBytes));
    }
  }
  std::vector<std::string> options = {option};
  if (columns_.size() == 1) {
    cure = ": check the delimiter";
    options.push_back(DelimiterFor(columns_.front()));
  }
  if (holds_number) {
    cure = ": if the file has no header line, name its columns";
    options.push_back("columns=label,age,...");
  }
  if (shown.size() < columns_.size()) shown.push_back("...");
  return WithOptions(
      absl::InvalidArgumentError(absl::StrCat("no column '", name, "'; the columns are ",
                                              absl::StrJoin(shown, ", "), cure)),
      options);
}

absl::Status Planner::FindAll() {
  const auto as_set = [](const std::vector<size_t>& places) {
    return std::set<size_t>(places.begin(), places.end());
  };
  std::vector<std::string> ignored;
  for (const std::string& name : options_.ignore) {
    if (name == "*") {
      ignore_rest_ = true;
    } else {
      ignored.push_back(name);
    }
  }
  CISTERN_ASSIGN_OR_RETURN(label_, Find("label", options_.label));
  if (!options_.weight.empty()) {
    CISTERN_ASSIGN_OR_RETURN(weight_, Find("weight", {options_.weight}));
  }
  CISTERN_ASSIGN_OR_RETURN(dense_, Find("dense", options_.dense));
  CISTERN_ASSIGN_OR_RETURN(sparse_, Find("sparse", options_.sparse));
  CISTERN_ASSIGN_OR_RETURN(const std::vector<size_t> bucket, Find("bucket", options_.bucket));
  CISTERN_ASSIGN_OR_RETURN(const std::vector<size_t> ignore,
                           Find("ignore", WithMembers(ignored, columns_)));
  CISTERN_ASSIGN_OR_RETURN(const std::vector<size_t> multi, Find("multi", options_.multi));
  bucket_ = as_set(bucket);
  ignore_ = as_set(ignore);
  multi_ = as_set(multi);
  return FindKeyWeights();
}

// Of libsvm and libffm lines, all features have weights.
absl::Status Planner::WeighFeatures() {
  std::set<size_t> weighed;
  if (options_.key_weights == std::vector<std::string>{"*"}) {
    for (size_t column = 1; column < columns_.size(); ++column) weighed.insert(column);
  } else {
    CISTERN_ASSIGN_OR_RETURN(const std::vector<size_t> found,
                             Find("key_weights", options_.key_weights));
    weighed.insert(found.begin(), found.end());
  }
  if (weighed.count(0) > 0 || weighed.size() + 1 != columns_.size()) {
    return WithOptions(
        absl::InvalidArgumentError(absl::StrCat(
            "weights of keys: ", absl::StrJoin(options_.key_weights, ","),
            " are not all features; the values of such lines are the weights of all or of none")),
        {"key_weights='*'"});
  }
  for (const size_t column : weighed) {
    key_weights_.emplace(column, std::nullopt);
    multi_.insert(column);
  }
  return absl::OkStatus();
}

absl::Status Planner::FindKeyWeights() {
  if (EntryOf(options_.format).has_features() && !options_.key_weights.empty()) {
    return WeighFeatures();
  }
  for (const std::string& given : options_.key_weights) {
    const auto refuse = [&](const std::string& why) {
      return WithOptions(
          absl::InvalidArgumentError(absl::StrCat("weights of keys of ", given, ": ", why)),
          {"key_weights"});
    };
    const std::pair<std::string, std::string> names = KeyWeightColumns(given);
    std::vector<std::string> both = {names.first};
    if (!names.second.empty()) both.push_back(names.second);
    CISTERN_ASSIGN_OR_RETURN(const std::vector<size_t> found, Find("key_weights", both));
    if (found.size() != both.size()) return refuse("name one column, or COLUMN=WEIGHTS");
    const std::optional<size_t> weights =
        found.size() > 1 ? std::optional<size_t>(found[1]) : std::nullopt;
    if (!key_weights_.emplace(found[0], weights).second) return refuse("it is given twice");
    multi_.insert(found[0]);
    if (!weights) continue;
    if (weights == found[0]) return refuse("a column is not the weights of its own values");
    for (const auto* const others : {&label_, &weight_, &dense_, &sparse_}) {
      if (std::count(others->begin(), others->end(), *weights) == 0) continue;
      return refuse(absl::StrCat("column ", Name(*weights),
                                 " has another role: name it nowhere else, or leave it out there"));
    }
    key_weight_columns_.insert(*weights);
  }
  return absl::OkStatus();
}

// The format's numeric columns are dense unless the options give them another role.
void Planner::DefaultDense() {
  if (!options_.dense.empty()) return;
  for (size_t i = 1; i <= EntryOf(options_.format).log1p; ++i) {
    const bool elsewhere = bucket_.count(i) > 0 || ignore_.count(i) > 0 ||
                           std::count(sparse_.begin(), sparse_.end(), i) > 0;
    if (!elsewhere) dense_.push_back(i);
  }
}

absl::Status Planner::ChooseSlots() {
  std::set<size_t> named(label_.begin(), label_.end());
  named.insert(weight_.begin(), weight_.end());
  named.insert(key_weight_columns_.begin(), key_weight_columns_.end());
  named.insert(dense_.begin(), dense_.end());
  named.insert(sparse_.begin(), sparse_.end());
  if (!options_.sparse.empty()) named.insert(crossed_.begin(), crossed_.end());
  for (size_t column = 0; column < columns_.size(); ++column) {
    const bool extra_slot =
        options_.sparse.empty() && bucket_.count(column) > 0 && crossed_.count(column) == 0;
    if ((named.count(column) > 0 && !extra_slot) || ignore_.count(column) > 0) continue;
    if (options_.sparse.empty() && (!ignore_rest_ || extra_slot)) {
      if (columns_[column].empty()) {
        return WithOptions(absl::InvalidArgumentError(absl::StrCat(
                               "column ", column + 1,
                               " has no name in the header line (row numbers, or lines that end in "
                               "the delimiter): leave it out, as ''")),
                           {"ignore"});
      }
      sparse_.push_back(column);
    } else if (!ignore_rest_) {
      return WithOptions(absl::InvalidArgumentError(absl::StrCat(
                             "column ", Name(column),
                             " has no role: name it as dense or sparse, or leave it out")),
                         {"dense", "sparse", "ignore"});
    }
  }
  return absl::OkStatus();
}

absl::Status Planner::CheckCross(const std::string& given, const std::vector<size_t>& cross) const {
  const auto refuse = [&](const std::string& why) {
    return WithOptions(absl::InvalidArgumentError(absl::StrCat("cross ", given, ": ", why)),
                       {"cross"});
  };
  if (cross.size() < 2 || cross.size() > kMaxCrossed) {
    return refuse(absl::StrCat("a cross needs 2 to ", kMaxCrossed, " columns, such as user,item"));
  }
  if (std::set<size_t>(cross.begin(), cross.end()).size() < cross.size()) {
    return refuse("a column is repeated");
  }
  std::vector<Recipe::Source> sources;
  for (const size_t column : cross) sources.push_back({columns_[column]});
  const std::string name = CrossName(sources);
  if (places_.count(name) > 0) {
    return refuse(absl::StrCat("its slot would be named '", name,
                               "', but a column has that name: rename the column"));
  }
  if (std::count(crosses_.begin(), crosses_.end(), cross) > 1) return refuse("it is given twice");
  for (const size_t column : cross) {
    if (std::count(label_.begin(), label_.end(), column) == 0) continue;
    return refuse(absl::StrCat("column ", Name(column), " is the label"));
  }
  return absl::OkStatus();
}

absl::Status Planner::FindCrosses() {
  for (const std::string& given : options_.cross) {
    CISTERN_ASSIGN_OR_RETURN(crosses_.emplace_back(),
                             Find("cross", absl::StrSplit(given, ',', absl::SkipEmpty())));
    crossed_.insert(crosses_.back().begin(), crosses_.back().end());
    CISTERN_RETURN_IF_ERROR(CheckCross(given, crosses_.back()));
  }
  return absl::OkStatus();
}

absl::Status Planner::FindShares() {
  for (const std::string& given : options_.share) {
    const auto refuse = [&](const std::string& why) {
      return WithOptions(absl::InvalidArgumentError(absl::StrCat("share ", given, ": ", why)),
                         {"share"});
    };
    CISTERN_ASSIGN_OR_RETURN(const std::vector<size_t> group,
                             Find("share", absl::StrSplit(given, ',', absl::SkipEmpty())));
    if (group.size() < 2) return refuse("needs several columns, such as user,friend");
    for (const size_t column : group) {
      if (std::count(sparse_.begin(), sparse_.end(), column) == 0) {
        return refuse(absl::StrCat("column ", Name(column), " is not a slot"));
      }
      if (!shares_.emplace(column, group.front()).second) {
        return refuse(absl::StrCat("column ", Name(column),
                                   " is repeated: name all columns that "
                                   "share keys in one list"));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status Planner::CheckLabels() const {
  if (label_.empty())
    return WithOptions(absl::InvalidArgumentError("no label column was named"), {"label"});
  std::set<size_t> features(dense_.begin(), dense_.end());
  features.insert(sparse_.begin(), sparse_.end());
  features.insert(crossed_.begin(), crossed_.end());
  for (size_t column : label_) {
    if (features.count(column) > 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("column ", Name(column), " is both a label and a feature"));
    }
  }
  for (const size_t weight : weight_) {
    const char* const role = std::count(label_.begin(), label_.end(), weight) > 0 ? "a label"
                             : features.count(weight) > 0                         ? "a feature"
                             : ignore_.count(weight) > 0                          ? "ignored"
                                                                                  : "";
    if (*role == '\0' && weight_.size() == 1) continue;
    return WithOptions(absl::InvalidArgumentError(absl::StrCat(
                           "weight: column ", Name(weight), " is ",
                           *role == '\0' ? "one of several, and a sample has one weight"
                                         : absl::StrCat(role, " already"))),
                       {"weight"});
  }
  return absl::OkStatus();
}

absl::Status Planner::MarkSlots(ColumnPlan* plan) const {
  std::set<size_t> slots(sparse_.begin(), sparse_.end());
  slots.insert(crossed_.begin(), crossed_.end());
  const auto slot = [this](size_t column) {
    return ColumnPlan::Slot{column, bucket_.count(column) > 0, multi_.count(column) > 0};
  };
  for (size_t column : sparse_) {
    plan->slots.push_back(slot(column));
    const auto shared = shares_.find(column);
    if (shared != shares_.end() && shared->second != column) {
      plan->slots.back().shares = shared->second;
    }
    const auto weights = key_weights_.find(column);
    if (weights == key_weights_.end()) continue;
    plan->slots.back().key_weights = true;
    plan->slots.back().weight_column = weights->second;
  }
  for (const std::vector<size_t>& cross : crosses_) {
    std::vector<ColumnPlan::Slot>& sources = plan->crosses.emplace_back();
    for (const size_t column : cross) sources.push_back(slot(column));
  }
  for (const auto& [option, columns] : {std::pair("bucket", bucket_), std::pair("multi", multi_)}) {
    for (size_t column : columns) {
      if (slots.count(column) > 0) continue;
      return WithOptions(
          absl::InvalidArgumentError(
              absl::StrCat(option, ": column ", Name(column), " is not a slot: name it as sparse")),
          {"sparse"});
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<ColumnPlan> Planner::Plan() {
  CISTERN_RETURN_IF_ERROR(FindAll());
  CISTERN_RETURN_IF_ERROR(FindCrosses());
  DefaultDense();
  CISTERN_RETURN_IF_ERROR(ChooseSlots());
  CISTERN_RETURN_IF_ERROR(FindShares());
  CISTERN_RETURN_IF_ERROR(CheckLabels());
  CISTERN_ASSIGN_OR_RETURN(const std::vector<size_t> log1p, Find("log1p", options_.log1p));
  for (size_t column : log1p) {
    if (std::count(dense_.begin(), dense_.end(), column) > 0) continue;
    return WithOptions(absl::InvalidArgumentError(absl::StrCat("log1p: column ", Name(column),
                                                               " is not dense: name it as dense")),
                       {"dense"});
  }
  ColumnPlan plan;
  plan.label = label_;
  if (!weight_.empty()) plan.weight = weight_.front();
  plan.dense = dense_;
  CISTERN_RETURN_IF_ERROR(MarkSlots(&plan));
  return plan;
}

}  // namespace

std::pair<std::string, std::string> KeyWeightColumns(const std::string& given) {
  const size_t equals = std::min(given.find('='), given.size());
  return {given.substr(0, equals), given.substr(std::min(equals + 1, given.size()))};
}

absl::StatusOr<ColumnPlan> PlanColumns(const ConvertOptions& options,
                                       const std::vector<std::string>& columns) {
  return Planner(options, columns).Plan();
}

}  // namespace cistern::data
