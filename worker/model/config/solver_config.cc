// Readers of the solver and of cistern.gauc_slot.
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "common/base/nearest_name.h"
#include "worker/model/config/config_readers.h"
#include "worker/model/metric/metric_name.h"

namespace cistern::model {
namespace {

// Reads metric names; AUC can have a threshold: "AUC:0.8025".
absl::Status ReadMetrics(const Json& metrics, SolverConfig* solver) {
  solver->eval_metrics.clear();
  for (size_t i = 0; i < metrics.size(); ++i) {
    const std::string metric = metrics[i].get<std::string>();
    const std::string path = absl::StrCat("solver.eval_metrics[", i, "]");
    if (absl::StartsWith(metric, "AUC:")) {
      const std::string threshold = metric.substr(4);
      if (!absl::SimpleAtod(threshold, &solver->auc_threshold) ||
          !(solver->auc_threshold > 0 && solver->auc_threshold <= 1)) {
        return ConfigError(path, absl::StrCat("the threshold of '", metric,
                                              "' must be a number above 0 and at most 1"));
      }
      solver->eval_metrics.push_back("AUC");
    } else if (FindMetric(metric).has_value()) {
      solver->eval_metrics.push_back(metric);
    } else {
      return ConfigError(
          path, absl::StrCat("unknown metric '", metric, "'", Suggest(metric, MetricNames())));
    }
  }
  return absl::OkStatus();
}

// Reads the name of one file, given under either of two keys; other_key may be null.
absl::StatusOr<std::string> ReadFile(const Json& json, const char* key, const char* other_key) {
  std::string file;
  for (const char* name : {key, other_key}) {
    if (name == nullptr || !json.contains(name) || json.at(name).empty()) continue;
    if (json.at(name).size() > 1) {
      return ConfigError(absl::StrCat("solver.", name), "takes one file, not several");
    }
    if (!file.empty()) {
      return ConfigError(absl::StrCat("solver.", name),
                         absl::StrCat("repeats solver.", key, ": leave one of them out"));
    }
    file = json.at(name)[0];
  }
  return file;
}

absl::Status ReadModelFiles(const Json& json, SolverConfig* solver) {
  CISTERN_ASSIGN_OR_RETURN(solver->dense_model_file,
                           ReadFile(json, "dense_model_file", "dense model_file"));
  CISTERN_ASSIGN_OR_RETURN(solver->dense_opt_states_file,
                           ReadFile(json, "dense_opt_states_file", nullptr));
  if (!solver->dense_opt_states_file.empty() && solver->dense_model_file.empty()) {
    return ConfigError("solver.dense_opt_states_file",
                       "requires solver.dense_model_file, the weights that the state belongs to");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadSolver(const Json& json, SolverConfig* solver, Notes* notes) {
  if (solver->max_iter > 0 && solver->num_epochs > 0) {
    return ConfigError("solver",
                       "max_iter and num_epochs exclude each other; set one of them to 0");
  }
  if (solver->max_iter == 0 && solver->num_epochs == 0) solver->num_epochs = 1;
  if (solver->batchsize_eval == 0) solver->batchsize_eval = solver->batchsize;
  if (json.contains("max_eval_batches")) {
    if (solver->eval_batches > 0) {
      return ConfigError("solver.max_eval_batches",
                         "repeats solver.eval_batches: leave one of them out");
    }
    solver->eval_batches = json.at("max_eval_batches");
  }
  if (json.contains("max_eval_samples")) {
    if (solver->eval_batches > 0) {
      return ConfigError("solver.max_eval_samples",
                         "repeats solver.eval_batches: leave one of them out");
    }
    const uint64_t samples = json.at("max_eval_samples"), batch = solver->batchsize_eval;
    solver->eval_batches = samples / batch + (samples % batch > 0);
  }
  if (solver->seed == 0) {
    solver->seed = kDefaultSeed;
    notes->push_back(absl::StrCat("solver.seed: 0 or absent means ", kDefaultSeed,
                                  ", so that a run can be repeated (HugeCTR draws a seed)"));
  }
  CISTERN_RETURN_IF_ERROR(ReadMetrics(json.at("eval_metrics"), solver));
  if (json.contains("auc_threshold")) {
    if (solver->auc_threshold < 1) {
      return ConfigError("solver.auc_threshold",
                         "repeats the threshold in solver.eval_metrics: leave one of them out");
    }
    solver->auc_threshold = json.at("auc_threshold");
  }
  return ReadModelFiles(json, solver);
}

absl::StatusOr<GroupSlot> ReadGroupSlot(const Json& json, const DataConfig& data) {
  const std::string name = json.at("input");
  GroupSlot group;
  std::vector<std::string> tops;
  for (const SparseInputConfig& input : data.sparse) tops.push_back(input.top);
  for (; group.input < tops.size() && tops[group.input] != name; ++group.input) {
  }
  if (group.input == tops.size()) {
    return ConfigError(
        "cistern.gauc_slot.input",
        absl::StrCat("no sparse input of layers[0] is named '", name, "'", Suggest(name, tops)));
  }
  group.slot = json.at("slot");
  const uint32_t slots = data.sparse[group.input].slot_num;
  if (group.slot >= slots) {
    return ConfigError("cistern.gauc_slot.slot",
                       absl::StrCat("input '", name, "' has ", slots, " slots, 0 to ", slots - 1));
  }
  const data::SequenceSlots& sequences = data.sparse[group.input].sequences;
  if (sequences.any() && sequences.lengths[group.slot] > 0) {
    return ConfigError("cistern.gauc_slot.slot",
                       absl::StrCat("slot ", group.slot, " of '", name,
                                    "' is a sequence; name a slot that holds one key"));
  }
  return group;
}

}  // namespace cistern::model
