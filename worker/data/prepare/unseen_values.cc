#include "worker/data/prepare/unseen_values.h"

#include <algorithm>
#include <map>
#include <string>

#include "absl/strings/str_format.h"

namespace cistern::data {
namespace {

constexpr double kMinShare = 0.5;
// If that of the training data is not known: many of its values may be rare, too.
constexpr double kShareLeastAlone = 0.95;
constexpr double kMoreThanTraining = 0.25;  // in share
constexpr uint64_t kMinSlotValues = 20;     // fewer say nothing
constexpr double kMinBeyond = 0.2;          // of numbers

double ShareOfRare(const ConvertSummary::Slot& slot) {
  return slot.values == 0 ? 0 : static_cast<double>(slot.rare) / static_cast<double>(slot.values);
}

}  // namespace

std::vector<std::string> UnseenValues(const ConvertSummary& fresh, const ConvertSummary* training) {
  std::vector<std::string> sentences;
  for (const std::string& sentence : fresh.odd_fields) {
    const bool is_known = training != nullptr && std::count(training->odd_fields.begin(),
                                                            training->odd_fields.end(), sentence);
    if (!is_known) sentences.push_back(sentence);  // else the same file
  }
  for (size_t s = 0; s < fresh.slots.size(); ++s) {
    const ConvertSummary::Slot& slot = fresh.slots[s];
    if (!slot.spelling.empty()) {
      sentences.push_back(slot.spelling);
      continue;
    }
    const double share = ShareOfRare(slot);
    const double least = training == nullptr ? kShareLeastAlone : kMinShare;
    if (slot.values < kMinSlotValues || share <= least) continue;
    std::string before;
    if (training != nullptr) {
      const double share_before = ShareOfRare(training->slots[s]);
      if (share < share_before + kMoreThanTraining) continue;
      before = absl::StrFormat(" (%.0f %% of those in the training data)", 100 * share_before);
    }
    sentences.push_back(absl::StrFormat(
        "slot '%s': %.0f %% of its values are not in the vocabulary of the training data%s, and "
        "the model knows nothing about them: is it the same column, written in the same way?",
        slot.column, 100 * share, before));
  }
  // A column can be several features, of which the pieces between its quantiles are narrow.
  std::map<std::string, uint64_t> beyond;
  for (const ConvertSummary::Dense& dense : fresh.dense) {
    const auto [found, is_new] = beyond.emplace(dense.column, dense.beyond);
    if (!is_new) found->second = std::min(found->second, dense.beyond);
  }
  for (const auto& [column, numbers] : beyond) {
    const double share = static_cast<double>(numbers) / static_cast<double>(fresh.samples);
    if (numbers < kMinSlotValues || share <= kMinBeyond) continue;
    sentences.push_back(absl::StrFormat(
        "column '%s': %.0f %% of its numbers are far beyond those of the training data, and all of "
        "these count as the largest or smallest that the model knows: are they in the same unit?",
        column, 100 * share));
  }
  return sentences;
}

std::vector<std::string> NewValues(const std::vector<GrownColumn>& grown) {
  std::vector<std::string> sentences;
  for (const GrownColumn& column : grown) {
    if (!column.spelling.empty()) {
      sentences.push_back(column.spelling);
      continue;
    }
    if (column.values < kMinSlotValues) continue;
    const double share = static_cast<double>(column.unknown) / static_cast<double>(column.values);
    if (share <= kMinShare || share < column.rare_before + kMoreThanTraining) continue;
    sentences.push_back(absl::StrFormat(
        "slot '%s': %.0f %% of its %d values are new to the model (%.0f %% of those of before were "
        "rare), which begins to learn them now: is it the same column, written in the same way?",
        column.column, 100 * share, column.values, 100 * column.rare_before));
  }
  return sentences;
}

}  // namespace cistern::data
