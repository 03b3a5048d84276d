#include "worker/report/run_history.h"

#include <algorithm>

#include "absl/strings/str_split.h"
#include "worker/report/json_reader.h"
#include "worker/report/run_event.h"

namespace cistern::report {
namespace {

using Json = nlohmann::ordered_json;

HistoryPoint PointOf(const Json& line) {
  HistoryPoint point;
  point.samples = NumberIn(line, "samples").value_or(0);
  point.seconds = NumberIn(line, "seconds").value_or(0);
  point.iter = CountIn(line, "iter").value_or(0);
  point.epoch = NumberIn(line, "epoch");
  point.loss = NumberIn(line, "loss");
  point.lr = NumberIn(line, "lr");
  point.auc = NumberIn(line, "auc");
  point.logloss = NumberIn(line, "logloss");
  point.samples_per_second = NumberIn(line, "samples_per_second");
  point.unseen_keys = CountIn(line, "unseen_keys");
  point.keys = CountIn(line, "keys");
  return point;
}

void AddPhases(const Json& line, RunHistory* history) {
  const auto phases = line.find("phases");
  if (phases == line.end() || !phases->is_object()) return;
  for (const auto& [name, seconds] : phases->items()) {
    if (seconds.is_number() && seconds.get<double>() >= 0) {
      history->phases[name] += seconds.get<double>();
    }
  }
}

void AddWarning(const std::string& message, RunHistory* history) {
  std::vector<std::string>& known = history->warnings;
  if (!message.empty() && std::find(known.begin(), known.end(), message) == known.end()) {
    known.push_back(message);
  }
}

}  // namespace

RunHistory ParseHistory(absl::string_view lines) {
  RunHistory history;
  std::vector<HistoryPoint> passes;
  for (const absl::string_view text : absl::StrSplit(lines, '\n', absl::SkipEmpty())) {
    const Json line = Json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (!line.is_object()) continue;
    const std::optional<RunEvent> event = FindEvent(TextIn(line, "event"));
    const HistoryPoint point = PointOf(line);
    AddPhases(line, &history);
    if (event == RunEvent::kTrain) history.train.push_back(point);
    if (event == RunEvent::kPass) passes.push_back(point);
    if (event == RunEvent::kEval) history.evals.push_back(point);
    if (event == RunEvent::kFinal) history.final = point;
    if (event == RunEvent::kWarning) AddWarning(TextIn(line, "message"), &history);
    if (event == RunEvent::kLost) ++history.losses;
    if (event == RunEvent::kRecover) ++history.recoveries;
    history.seconds = std::max(history.seconds, point.seconds);
  }
  if (history.train.empty()) history.train = std::move(passes);
  return history;
}

}  // namespace cistern::report
