#include "worker/report/score_detail.h"

#include <algorithm>

#include "worker/report/json_reader.h"

namespace cistern::report {
namespace {

constexpr uint64_t kDetailFormat = 1;

using Json = nlohmann::ordered_json;

// One bin is [index, samples, positives, predicted], then its weight if samples have weights.
std::optional<ScoreBin> BinOf(const Json& row) {
  if (!row.is_array() || row.size() < 4 || row.size() > 5) return std::nullopt;
  if (!row[0].is_number_integer() || !row[1].is_number_unsigned()) return std::nullopt;
  if (!row[2].is_number() || !row[3].is_number()) return std::nullopt;
  const int64_t index = row[0].get<int64_t>();
  if (index < -kBinsEachSide || index >= kBinsEachSide) return std::nullopt;
  ScoreBin bin{static_cast<int32_t>(index), row[1].get<uint64_t>(), row[2].get<double>(),
               row[3].get<double>()};
  if (row.size() == 5) {
    if (!row[4].is_number()) return std::nullopt;
    bin.weight = row[4].get<double>();
  }
  return bin;
}

Json DecilesOf(const std::vector<ScoreBin>& bins) {
  Json deciles = Json::array();
  for (const ScorePart& part : CutByScore(bins, 10)) {
    const double total = part.sum.total();
    deciles.push_back({{"samples", part.sum.samples},
                       {"mean_label", part.sum.positives / total},
                       {"mean_prediction", part.sum.predicted / total},
                       {"auc", JsonOf(part.auc)}});
  }
  return deciles;
}

}  // namespace

void ScoreCollector::Add(float label, float prediction, double margin, float weight) {
  if (weight == 0) return;
  bins_.Add(label, prediction, margin, static_cast<double>(weight));
  if (label != 0 && label != 1) ++other_labels_;
  lowest_ = std::min(lowest_, prediction);
  highest_ = std::max(highest_, prediction);
}

ScoreDetail ScoreCollector::Detail() const {
  ScoreDetail detail;
  detail.bins = bins_.Filled();
  for (const ScoreBin& bin : detail.bins) {
    detail.samples += bin.samples;
    detail.positives += bin.positives;
    detail.predicted += bin.predicted;
    if (bin.weight) detail.weight = detail.weight.value_or(0) + *bin.weight;
  }
  detail.other_labels = other_labels_;
  if (detail.samples > 0) {
    detail.lowest = lowest_;
    detail.highest = highest_;
  }
  return detail;
}

std::string FormatScoreDetail(const ScoreDetail& detail) {
  Json json;
  json["format"] = kDetailFormat;
  json["iter"] = detail.iter;
  json["samples"] = detail.samples;
  json["positives"] = detail.positives;
  json["predicted"] = detail.predicted;
  if (detail.weight) json["weight"] = *detail.weight;
  json["other_labels"] = detail.other_labels;
  json["lowest"] = detail.lowest;
  json["highest"] = detail.highest;
  json["keys"] = detail.keys;
  json["unseen_keys"] = detail.unseen_keys;
  json["auc"] = JsonOf(detail.auc);
  json["logloss"] = JsonOf(detail.logloss);
  json["deciles"] = DecilesOf(detail.bins);
  // Bins are short lines of numbers; an indented list would be ten times as long.
  Json bins = Json::array();
  for (const ScoreBin& bin : detail.bins) {
    bins.push_back({bin.index, bin.samples, bin.positives, bin.predicted});
    if (bin.weight) bins.back().push_back(*bin.weight);
  }
  json["bins_per_unit"] = kBinsPerUnit;
  json["bins"] = std::move(bins);
  return json.dump() + "\n";
}

absl::StatusOr<ScoreDetail> ParseScoreDetail(const std::string& text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || CountIn(json, "format") != kDetailFormat ||
      CountIn(json, "bins_per_unit") != kBinsPerUnit) {
    return absl::DataLossError("not an evaluation of format 1");
  }
  ScoreDetail detail;
  detail.iter = CountIn(json, "iter").value_or(0);
  detail.samples = CountIn(json, "samples").value_or(0);
  detail.positives = NumberIn(json, "positives").value_or(0);
  detail.predicted = NumberIn(json, "predicted").value_or(0);
  detail.weight = NumberIn(json, "weight");
  detail.other_labels = CountIn(json, "other_labels").value_or(0);
  detail.lowest = NumberIn(json, "lowest").value_or(0);
  detail.highest = NumberIn(json, "highest").value_or(0);
  detail.keys = CountIn(json, "keys").value_or(0);
  detail.unseen_keys = CountIn(json, "unseen_keys").value_or(0);
  detail.auc = NumberIn(json, "auc");
  detail.logloss = NumberIn(json, "logloss");
  const Json* bins = ListIn(json, "bins");
  for (size_t i = 0; bins != nullptr && i < bins->size(); ++i) {
    const std::optional<ScoreBin> bin = BinOf((*bins)[i]);
    const bool ascends = detail.bins.empty() || (bin && bin->index > detail.bins.back().index);
    if (!bin || bin->samples == 0 || !ascends) {
      return absl::DataLossError("the bins of the evaluation are not ascending counts");
    }
    detail.bins.push_back(*bin);
  }
  return detail;
}

}  // namespace cistern::report
