#include "cli/command/tune_table.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "cli/terminal/aligned_text.h"
#include "common/base/amount_text.h"

namespace cistern::cli {

using Json = nlohmann::ordered_json;

std::string TrialsTable(const std::vector<app::Trial>& trials) {
  std::vector<const app::Trial*> order;
  for (const app::Trial& trial : trials) order.push_back(&trial);
  std::stable_sort(order.begin(), order.end(), [](const app::Trial* a, const app::Trial* b) {
    return a->auc.value_or(-1) > b->auc.value_or(-1);
  });
  std::vector<std::vector<std::string>> rows = {{"TRIAL", "LEARNING RATE", "DIM", "DEPTH", "AUC",
                                                 "LOG LOSS", "EVALUATIONS", "TIME", "STATE"}};
  const auto number = [](const std::optional<double>& x) {
    return x ? absl::StrFormat("%.6f", *x) : std::string("-");
  };
  const auto size = [](const std::optional<uint32_t>& x) {
    return x ? absl::StrCat(*x) : std::string("-");
  };
  for (const app::Trial* trial : order) {
    const model::ModelKnobs& knobs = trial->knobs;
    const std::string end = app::TrialEndName(trial->end);
    rows.push_back({absl::StrCat(trial->number), absl::StrFormat("%g", knobs.learning_rate),
                    size(knobs.dim), size(knobs.depth), number(trial->auc), number(trial->logloss),
                    absl::StrCat(trial->curve.size()), DurationText(trial->seconds),
                    trial->number == 1 ? end + " (the model as it was)" : end});
  }
  return AlignedText(rows);
}

Json TrialsJson(const std::vector<app::Trial>& trials, const std::string& out) {
  Json all = Json::array();
  for (const app::Trial& trial : trials) {
    Json json = {{"trial", trial.number},
                 {"learning_rate", trial.knobs.learning_rate},
                 {"dim", trial.knobs.dim ? Json(*trial.knobs.dim) : Json()},
                 {"depth", trial.knobs.depth ? Json(*trial.knobs.depth) : Json()},
                 {"state", app::TrialEndName(trial.end)},
                 {"auc", trial.auc ? Json(*trial.auc) : Json()},
                 {"logloss", trial.logloss ? Json(*trial.logloss) : Json()},
                 {"evaluations", trial.curve.size()},
                 {"seconds", trial.seconds},
                 {"run", app::TrialFolder(out, trial.number)}};
    all.push_back(std::move(json));
  }
  return all;
}

}  // namespace cistern::cli
