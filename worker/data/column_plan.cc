#include "worker/data/column_plan.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_join.h"
#include "worker/data/column_list.h"

namespace cistern {
namespace {

// The lists of the options, ranges expanded, as positions in the table.
class Planner {
 public:
  Planner(const ConvertOptions& options, const std::vector<std::string>& columns)
      : options_(options), columns_(columns) {
    for (size_t i = 0; i < columns.size(); ++i) places_[columns[i]] = i;
  }
  absl::StatusOr<ColumnPlan> Plan();

 private:
  absl::StatusOr<std::vector<size_t>> Find(const char* flag, const std::vector<std::string>& names);
  absl::Status FindAll();
  void DefaultDense();
  absl::Status ChooseSlots();
  absl::Status CheckLabels() const;
  absl::Status MarkSlots(ColumnPlan* plan) const;
  std::string Name(size_t column) const { return absl::StrCat("'", columns_[column], "'"); }

  const ConvertOptions& options_;
  const std::vector<std::string>& columns_;
  std::map<std::string, size_t> places_;
  std::vector<size_t> label_, dense_, sparse_;
  std::set<size_t> bucket_, ignore_, multi_;
  bool ignore_rest_ = false;
};

absl::StatusOr<std::vector<size_t>> Planner::Find(const char* flag,
                                                  const std::vector<std::string>& names) {
  CISTERN_ASSIGN_OR_RETURN(const std::vector<std::string> expanded, ExpandColumns(names));
  std::vector<size_t> found;
  for (const std::string& name : expanded) {
    const auto place = places_.find(name);
    if (place == places_.end()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--", flag, ": no column '", name, "'; the columns are ", absl::StrJoin(columns_, ", ")));
    }
    found.push_back(place->second);
  }
  return found;
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
  CISTERN_ASSIGN_OR_RETURN(dense_, Find("dense", options_.dense));
  CISTERN_ASSIGN_OR_RETURN(sparse_, Find("sparse", options_.sparse));
  CISTERN_ASSIGN_OR_RETURN(const std::vector<size_t> bucket, Find("bucket", options_.bucket));
  CISTERN_ASSIGN_OR_RETURN(const std::vector<size_t> ignore, Find("ignore", ignored));
  CISTERN_ASSIGN_OR_RETURN(const std::vector<size_t> multi, Find("multi", options_.multi));
  bucket_ = as_set(bucket);
  ignore_ = as_set(ignore);
  multi_ = as_set(multi);
  return absl::OkStatus();
}

// Criteo's numeric columns are dense unless they were given another part.
void Planner::DefaultDense() {
  if (options_.format != TextFormat::kCriteo || !options_.dense.empty()) return;
  for (size_t i = 1; i <= 13; ++i) {
    const bool elsewhere = bucket_.count(i) > 0 || ignore_.count(i) > 0 ||
                           std::count(sparse_.begin(), sparse_.end(), i) > 0;
    if (!elsewhere) dense_.push_back(i);
  }
}

absl::Status Planner::ChooseSlots() {
  std::set<size_t> named(label_.begin(), label_.end());
  named.insert(dense_.begin(), dense_.end());
  named.insert(sparse_.begin(), sparse_.end());
  for (size_t column = 0; column < columns_.size(); ++column) {
    const bool extra_slot = options_.sparse.empty() && bucket_.count(column) > 0;
    if ((named.count(column) > 0 && !extra_slot) || ignore_.count(column) > 0) continue;
    if (options_.sparse.empty() && (!ignore_rest_ || extra_slot)) {
      sparse_.push_back(column);
    } else if (!ignore_rest_) {
      return absl::InvalidArgumentError(absl::StrCat(
          "column ", Name(column), " has no part: add it to --dense, --sparse or --ignore"));
    }
  }
  return absl::OkStatus();
}

absl::Status Planner::CheckLabels() const {
  if (label_.empty()) return absl::InvalidArgumentError("no label column was named: use --label");
  std::set<size_t> features(dense_.begin(), dense_.end());
  features.insert(sparse_.begin(), sparse_.end());
  for (size_t column : label_) {
    if (features.count(column) > 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("column ", Name(column), " is the label and a feature at once"));
    }
  }
  return absl::OkStatus();
}

absl::Status Planner::MarkSlots(ColumnPlan* plan) const {
  const std::set<size_t> slots(sparse_.begin(), sparse_.end());
  for (size_t column : sparse_) {
    plan->slots.push_back({column, bucket_.count(column) > 0, multi_.count(column) > 0});
  }
  for (const auto& [flag, columns] : {std::pair("bucket", bucket_), std::pair("multi", multi_)}) {
    for (size_t column : columns) {
      if (slots.count(column) > 0) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("--", flag, ": column ", Name(column), " is no slot: add it to --sparse"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<ColumnPlan> Planner::Plan() {
  CISTERN_RETURN_IF_ERROR(FindAll());
  DefaultDense();
  CISTERN_RETURN_IF_ERROR(ChooseSlots());
  CISTERN_RETURN_IF_ERROR(CheckLabels());
  ColumnPlan plan;
  plan.label = label_;
  plan.dense = dense_;
  CISTERN_RETURN_IF_ERROR(MarkSlots(&plan));
  return plan;
}

}  // namespace

std::vector<std::string> CriteoColumns() {
  return *ExpandColumns({"label", "I1..I13", "C1..C26"});
}

absl::StatusOr<ColumnPlan> PlanColumns(const ConvertOptions& options,
                                       const std::vector<std::string>& columns) {
  return Planner(options, columns).Plan();
}

}  // namespace cistern
