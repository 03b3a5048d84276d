#include "app/tune/search.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "common/io/new_file.h"
#include "worker/report/run_event.h"

namespace cistern::app {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kTrialsForMedian = 3;
constexpr const char* kEndNames[] = {"finished", "stopped", "failed"};  // in the order of the enum
constexpr uint64_t kMaxLogBytes = uint64_t{64} << 20;

// In [0, 1). Of the standard's generators only the engine gives the same numbers everywhere.
double Uniform(std::mt19937_64& draw) {
  return static_cast<double>(draw() >> 11) * 0x1p-53;
}

template <typename T>
T OneOf(const std::vector<T>& values, std::mt19937_64& draw) {
  const auto index = static_cast<size_t>(Uniform(draw) * static_cast<double>(values.size()));
  return values[std::min(index, values.size() - 1)];
}

// Four significant digits, so that tables and model files are easy to read.
double Rounded(double x) {
  double rounded = x;
  return absl::SimpleAtod(absl::StrFormat("%.4g", x), &rounded) ? rounded : x;
}

template <typename T>
Json OrNull(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

std::optional<double> NumberAt(const Json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

std::optional<uint32_t> SizeAt(const Json& json, const char* key) {
  const std::optional<double> number = NumberAt(json, key);
  if (!number || !(*number >= 1 && *number <= 1e6)) return std::nullopt;
  return static_cast<uint32_t>(*number);
}

std::string TextAt(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found == json.end() || !found->is_string() ? "" : found->get<std::string>();
}

std::string LineOf(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Json JsonOf(const Trial& trial) {
  Json json;
  json["trial"] = trial.number;
  json["learning_rate"] = trial.knobs.learning_rate;
  json["dim"] = OrNull(trial.knobs.dim);
  json["depth"] = OrNull(trial.knobs.depth);
  json["state"] = TrialEndName(trial.end);
  json["auc"] = OrNull(trial.auc);
  json["logloss"] = OrNull(trial.logloss);
  json["curve"] = Json::array();
  for (const auto& [evaluation, auc] : trial.curve) json["curve"].push_back(auc);
  json["seconds"] = trial.seconds;
  if (!trial.message.empty()) json["message"] = trial.message;
  return json;
}

// nullopt: not a trial, for example a line that was cut off.
std::optional<Trial> TrialOf(const Json& json) {
  if (!json.is_object()) return std::nullopt;
  const std::optional<uint32_t> number = SizeAt(json, "trial");
  const auto end = std::find(std::begin(kEndNames), std::end(kEndNames), TextAt(json, "state"));
  if (!number || end == std::end(kEndNames)) return std::nullopt;
  Trial trial;
  trial.number = *number;
  trial.knobs.learning_rate = NumberAt(json, "learning_rate").value_or(0);
  trial.knobs.dim = SizeAt(json, "dim");
  trial.knobs.depth = SizeAt(json, "depth");
  trial.end = static_cast<TrialEnd>(end - std::begin(kEndNames));
  trial.auc = NumberAt(json, "auc");
  trial.logloss = NumberAt(json, "logloss");
  if (json.contains("curve")) {
    for (const Json& auc : json.at("curve")) {
      if (auc.is_number()) trial.curve[trial.curve.size() + 1] = auc.get<double>();
    }
  }
  trial.seconds = NumberAt(json, "seconds").value_or(0);
  trial.message = TextAt(json, "message");
  return trial;
}

// The first member that differs.
std::string FirstDifference(const Json& now, const Json& before) {
  for (const auto& [key, value] : now.items()) {
    if (!before.contains(key)) return key;
    if (before.at(key) != value) {
      return key + ": " + value.dump() + " instead of " + before.at(key).dump();
    }
  }
  return "the version";
}

}  // namespace

const char* TrialEndName(TrialEnd end) {
  return kEndNames[static_cast<size_t>(end)];
}

TuneSpace DefaultSpace(const model::ModelKnobs& model) {
  TuneSpace space;
  if (model.dim) {
    std::set<uint32_t> dims;
    for (const uint32_t dim : {*model.dim / 2, *model.dim, *model.dim * 2, *model.dim * 4}) {
      if (dim >= 1 && dim <= 256) dims.insert(dim);
    }
    space.dims.assign(dims.begin(), dims.end());
  }
  if (model.depth) {
    for (uint32_t depth = *model.depth > 1 ? *model.depth - 1 : 1; depth <= *model.depth + 2;
         ++depth) {
      space.depths.push_back(depth);
    }
  }
  return space;
}

model::ModelKnobs KnobsOfTrial(const model::ModelKnobs& model, const TuneSpace& space,
                               uint64_t seed, uint64_t trial) {
  if (trial <= 1) return model;
  std::seed_seq sequence = {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32),
                            static_cast<uint32_t>(trial)};
  std::mt19937_64 draw(sequence);
  model::ModelKnobs knobs = model;
  const double position = Uniform(draw);
  knobs.learning_rate = space.learning_rates.empty()
                            ? Rounded(model.learning_rate * std::pow(10, 2 * position - 1))
                            : OneOf(space.learning_rates, draw);
  if (model.dim && !space.dims.empty()) knobs.dim = OneOf(space.dims, draw);
  if (model.depth && !space.depths.empty()) knobs.depth = OneOf(space.depths, draw);
  return knobs;
}

void Trial::Take(double reached, std::optional<double> logloss_then) {
  if (!auc || reached > *auc) {
    auc = reached;
    logloss = logloss_then;
  }
  curve[curve.size() + 1] = reached;
}

void Trial::TakeEvaluations(FileSystem& files, const std::string& run) {
  const absl::StatusOr<std::string> lines = ReadWhole(files, run + "/metrics.jsonl", kMaxLogBytes);
  if (!lines.ok()) return;
  for (const absl::string_view line : absl::StrSplit(*lines, '\n', absl::SkipEmpty())) {
    const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object() || report::FindEvent(TextAt(json, "event")) != report::RunEvent::kEval)
      continue;
    if (const auto reached = NumberAt(json, "auc")) Take(*reached, NumberAt(json, "logloss"));
  }
}

std::optional<double> Trial::BestOf(uint64_t evaluations) const {
  std::optional<double> best;
  for (const auto& [evaluation, reached] : curve) {
    if (evaluation <= evaluations && (!best || reached > *best)) best = reached;
  }
  return best;
}

bool IsBelowMedian(const Trial& trial, const std::vector<Trial>& others) {
  if (trial.curve.empty()) return false;
  const uint64_t evaluations = trial.curve.rbegin()->first;
  std::vector<double> bests;
  for (const Trial& other : others) {
    if (other.number == trial.number) continue;
    // A trial that ended earlier of itself keeps its best; one that was stopped is not compared.
    if (other.end == TrialEnd::kStopped && other.curve.size() < evaluations) continue;
    if (const std::optional<double> best = other.BestOf(evaluations)) bests.push_back(*best);
  }
  if (bests.size() < kTrialsForMedian) return false;
  std::sort(bests.begin(), bests.end());
  const size_t half = bests.size() / 2;
  const double median = bests.size() % 2 == 1 ? bests[half] : (bests[half - 1] + bests[half]) / 2;
  return *trial.BestOf(evaluations) < median;
}

std::string TuneLog::PathIn(const std::string& folder) {
  return folder + "/tune.jsonl";
}

absl::Status TuneLog::ExistsError(const std::string& folder) {
  return WithOptions(
      WithFix(absl::InvalidArgumentError(absl::StrCat(folder, " already holds a search")),
              "continue it, replace it, or name another folder"),
      {"out", "resume", "overwrite"});
}

absl::StatusOr<TuneLog> TuneLog::Open(FileSystem& files, const std::string& folder,
                                      const Json& task, bool resume, bool overwrite) {
  TuneLog log(files, PathIn(folder));
  log.task_ = task;
  CISTERN_ASSIGN_OR_RETURN(const bool exists, files.Exists(log.path_));
  if (!exists || overwrite) {
    CISTERN_RETURN_IF_ERROR(log.Write());
    return log;
  }
  if (!resume) return ExistsError(folder);
  CISTERN_ASSIGN_OR_RETURN(const std::string text, ReadWhole(files, log.path_, kMaxLogBytes));
  bool first = true;
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (std::exchange(first, false)) {
      if (json == task) continue;
      return WithOptions(
          WithFix(absl::InvalidArgumentError(absl::StrCat(
                      log.path_, ": the search to resume differs in ",
                      FirstDifference(task, json.is_object() ? json : Json::object()))),
                  "ask for what began it, or name another folder"),
          {"out"});
    }
    if (const std::optional<Trial> trial = TrialOf(json)) log.trials_.push_back(*trial);
  }
  return log;
}

absl::Status TuneLog::Add(const Trial& trial) {
  trials_.push_back(trial);
  return Write();
}

absl::Status TuneLog::Write() const {
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<NewFile> file, NewFile::Create(*files_, path_));
  CISTERN_RETURN_IF_ERROR(file->Append(LineOf(task_)));
  for (const Trial& trial : trials_) {
    CISTERN_RETURN_IF_ERROR(file->Append(LineOf(JsonOf(trial))));
  }
  return file->Close();
}

std::string KnobsText(const model::ModelKnobs& knobs) {
  std::string text = absl::StrFormat("learning rate %g", knobs.learning_rate);
  if (knobs.dim) absl::StrAppend(&text, ", dim ", *knobs.dim);
  if (knobs.depth) absl::StrAppend(&text, ", depth ", *knobs.depth);
  return text;
}

std::string TrialFolder(const std::string& out, uint64_t trial) {
  return absl::StrCat(out, "/", absl::StrFormat("trial-%03d", trial));
}

const Trial* BestOf(const std::vector<Trial>& trials) {
  const Trial* best = nullptr;
  for (const Trial& trial : trials) {
    if (trial.auc && (best == nullptr || *trial.auc > *best->auc)) best = &trial;
  }
  return best;
}

absl::Status RemoveStates(FileSystem& files, const std::string& out) {
  CISTERN_ASSIGN_OR_RETURN(const std::vector<std::string> names, files.List(out));
  for (const std::string& name : names) {
    if (!absl::StartsWith(name, "trial-") || absl::EndsWith(name, ".json")) continue;
    CISTERN_RETURN_IF_ERROR(RemoveTree(files, absl::StrCat(out, "/", name, "/state")));
  }
  return absl::OkStatus();
}

}  // namespace cistern::app
