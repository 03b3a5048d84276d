#include "worker/data/prepare/leak_check.h"

#include <algorithm>
#include <cmath>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_format.h"
#include "common/base/shown_text.h"
#include "worker/data/prepare/column_name.h"
#include "worker/data/recipe/value_text.h"

namespace cistern::data {
namespace {

constexpr size_t kMinRows = 200;
// The doubt that a leak leaves: errors, as a share of those of the best constant guess.
constexpr double kMaxDoubt = 0.002;
constexpr double kMinAuc = 0.9995;
constexpr double kMinFeedbackAuc = 0.8;  // of a column with the name of feedback
// Of a column that is used, with a note: a copy of the label in which one in twenty is wrong has
// 0.95. Hardly a column that is known before a click has so much.
constexpr double kMinSuspectAuc = 0.9;
// Likewise, of rows with another value than the usual one: the share of positive ones, and how
// much higher their odds are.
constexpr double kMinSuspectShare = 0.8, kMinSuspectOdds = 10;
// A part of the rows: its class may be so many times rarer to miss than in all rows, and still is
// not of one class by chance.
constexpr double kRarerThanAll = 5, kChance = 1e-5;
constexpr size_t kMinPart = 20, kMinValue = 200;
constexpr size_t kLeastOfClass = 20;
constexpr size_t kRowsPerValue = 10;  // fewer: values decide the label by chance

// Rows by value, and the positive ones among them.
using Counts = absl::flat_hash_map<absl::string_view, std::pair<size_t, size_t>>;

bool Decides(const Counts& counts, size_t rows, size_t positives) {
  if (counts.size() < 2 || counts.size() * kRowsPerValue > rows) return false;
  size_t errors = 0;
  for (const auto& [value, count] : counts) {
    errors += std::min(count.second, count.first - count.second);
  }
  return static_cast<double>(errors) <=
         kMaxDoubt * static_cast<double>(std::min(positives, rows - positives));
}

// AUC of the numbers as a prediction: pairs in order, ties count one half.
double AucOf(std::vector<std::pair<double, bool>> rows) {
  std::sort(rows.begin(), rows.end());
  double below = 0, wins = 0, positives = 0;
  for (size_t i = 0; i < rows.size();) {
    double tied = 0, tied_positive = 0;
    const double value = rows[i].first;
    for (; i < rows.size() && rows[i].first == value; ++i)
      (rows[i].second ? tied_positive : tied) += 1;
    wins += tied_positive * (below + tied / 2);
    below += tied;
    positives += tied_positive;
  }
  return positives == 0 || below == 0 ? 0.5 : wins / (positives * below);
}

class LeakCheck {
 public:
  LeakCheck(const TableProfile& profile, const LabelChoice& label) : profile_(profile) {
    for (const std::vector<std::string>& row : profile.sample) {
      is_positive_.push_back(label.IsPositive(row[label.column]));
    }
    positives_ = std::count(is_positive_.begin(), is_positive_.end(), true);
  }

  Leak Find(size_t column) const {
    Counts by_value, by_presence;
    Count(column, &by_value, &by_presence);
    std::string why = FindSure(column, by_value, by_presence);
    if (!why.empty()) return {std::move(why), true};
    why = Suspect(column, by_value);
    if (why.empty() || !IsFeedbackName(profile_.columns[column].name)) return {why, false};
    return {absl::StrCat("by its name it is known only after the label: ", why), true};
  }

  size_t positives() const { return positives_; }

 private:
  void Count(size_t column, Counts* by_value, Counts* by_presence) const {
    for (size_t i = 0; i < is_positive_.size(); ++i) {
      const absl::string_view text = profile_.sample[i][column];
      for (auto* const count :
           {&(*by_value)[text], &(*by_presence)[text.empty() ? "" : "present"]}) {
        ++count->first;
        count->second += is_positive_[i];
      }
    }
  }
  // Why a column decides the label, or "".
  std::string FindSure(size_t column, const Counts& by_value, const Counts& by_presence) const {
    const size_t rows = is_positive_.size();
    if (Decides(by_presence, rows, positives_)) return "decides the label by being missing";
    if (Decides(by_value, rows, positives_)) return "its values decide the label";
    const std::string part = FindPart(by_value, by_presence);
    if (!part.empty()) return part;
    const double auc = std::max(Auc(column), 1 - Auc(column));
    const bool feedback = IsFeedbackName(profile_.columns[column].name);
    if (auc < (feedback ? kMinFeedbackAuc : kMinAuc)) return "";
    return absl::StrFormat(
        "%s (its AUC alone is %.4f)",
        feedback ? "by its name it is known only after the label" : "decides the label", auc);
  }

  // Why a column tells more of the label than is known before it, or "".
  std::string Suspect(size_t column, const Counts& by_value) const {
    if (std::min(positives_, is_positive_.size() - positives_) < kLeastOfClass) return "";
    const double order = Auc(column);
    const double auc = std::max({order, 1 - order, AucOfValues(column, by_value)});
    if (auc >= kMinSuspectAuc) return absl::StrFormat("its AUC alone is %.3f", auc);
    const auto most = std::max_element(
        by_value.begin(), by_value.end(),
        [](const auto& a, const auto& b) { return a.second.first < b.second.first; });
    const double rows = static_cast<double>(is_positive_.size());
    const double others = rows - static_cast<double>(most->second.first);
    const double positives = static_cast<double>(positives_ - most->second.second);
    if (others < kMinPart || positives < kMinSuspectShare * others) return "";
    const double share = (positives + 1) / (others + 2),
                 all = static_cast<double>(positives_) / rows;
    if (share * (1 - all) < kMinSuspectOdds * all * (1 - share)) return "";
    return absl::StrFormat("%.0f%% of the rows with another value than '%s' are positive",
                           100 * positives / others, ShownText(most->first, 40));
  }
  // The AUC of the click rate of each row's value in the other rows.
  double AucOfValues(size_t column, const Counts& by_value) const {
    if (by_value.size() * kRowsPerValue > is_positive_.size()) return 0.5;
    const double all = static_cast<double>(positives_) / static_cast<double>(is_positive_.size());
    std::vector<std::pair<double, bool>> rows;
    for (size_t i = 0; i < is_positive_.size(); ++i) {
      const auto& [count, positives] = by_value.at(profile_.sample[i][column]);
      const double others = static_cast<double>(positives) - (is_positive_[i] ? 1 : 0);
      rows.emplace_back((others + all) / static_cast<double>(count), is_positive_[i]);
    }
    return AucOf(std::move(rows));
  }

  // Rows of one class that are too many for chance, even if they had nearly always that class.
  bool AreTooMany(size_t rows, bool positive) const {
    const double all = static_cast<double>(is_positive_.size());
    const double share =
        static_cast<double>(positive ? positives_ : is_positive_.size() - positives_) / all;
    const double likely = 1 - (1 - share) / kRarerThanAll;
    return rows >= kMinPart && static_cast<double>(rows) * std::log(likely) < std::log(kChance);
  }
  // Whether `rows` rows, of which so many are positive, are of one class for no chance.
  bool IsOfOneClass(size_t rows, size_t positive) const {
    const size_t errors = std::min(positive, rows - positive);
    return static_cast<double>(errors) <= kMaxDoubt * static_cast<double>(rows) &&
           AreTooMany(rows, 2 * positive > rows);
  }
  // A leak in a part of the rows.
  std::string FindPart(const Counts& by_value, const Counts& by_presence) const {
    const size_t rows = is_positive_.size();
    const auto most = std::max_element(
        by_value.begin(), by_value.end(),
        [](const auto& a, const auto& b) { return a.second.first < b.second.first; });
    const size_t others = rows - most->second.first;
    const size_t positives = positives_ - most->second.second;
    // What has only negative rows is often a feature (a robot); unless it is there for them alone.
    const bool tells = 2 * positives > others || most->first.empty();
    if (tells && IsOfOneClass(others, positives)) {
      return absl::StrFormat("all %d sampled rows with another value than '%s' are of one class",
                             others, std::string(most->first));
    }
    const auto missing = by_presence.find("");
    if (missing != by_presence.end() && by_presence.size() == 2 &&
        IsOfOneClass(missing->second.first, missing->second.second)) {
      return absl::StrFormat("all %d sampled rows in which it is missing are of one class",
                             missing->second.first);
    }
    if (by_value.size() > ColumnProfile::kFewValues) return "";
    for (const auto& [value, count] : by_value) {
      if (count.first < kMinValue || 2 * count.second < count.first) continue;
      if (!IsOfOneClass(count.first, count.second)) continue;
      return absl::StrFormat("all %d sampled rows with '%s' are of one class", count.first,
                             std::string(value));
    }
    return "";
  }

  double Auc(size_t column) const {
    const ColumnType type = profile_.columns[column].type;
    if (type != ColumnType::kInteger && type != ColumnType::kNumber) return 0.5;
    std::vector<std::pair<double, bool>> rows;
    size_t positives = 0;
    for (size_t i = 0; i < is_positive_.size(); ++i) {
      double number = 0;
      if (ReadNumber(profile_.sample[i][column], &number) != NumberKind::kFinite) continue;
      rows.emplace_back(number, is_positive_[i]);
      positives += is_positive_[i];
    }
    // Few rows of a class are in order by chance.
    if (std::min(positives, rows.size() - positives) < kLeastOfClass) return 0.5;
    return AucOf(std::move(rows));
  }

  const TableProfile& profile_;
  std::vector<bool> is_positive_;
  size_t positives_ = 0;
};

}  // namespace

std::vector<Leak> FindLeaks(const TableProfile& profile, const LabelChoice& label) {
  std::vector<Leak> leaks(profile.columns.size());
  const LeakCheck check(profile, label);
  const size_t rows = profile.sample.size();
  if (rows < kMinRows || std::min(check.positives(), rows - check.positives()) == 0) return leaks;
  for (size_t i = 0; i < leaks.size(); ++i) {
    if (i != label.column) leaks[i] = check.Find(i);
  }
  return leaks;
}

}  // namespace cistern::data
