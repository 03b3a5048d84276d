#include "cli/command/train_data.h"

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "app/run/run_folder.h"
#include "cli/command/more_data.h"
#include "cli/command/shared_flags.h"
#include "cli/terminal/exit_code.h"

namespace cistern {
namespace {

// Raises the bound on the keys of a sample to what converted data needs. It changes no prediction.
absl::Status GrowBound(uint64_t max_keys, Console& console, app::ModelOptions* model) {
  CISTERN_ASSIGN_OR_RETURN(const ModelConfig config, ReadModelArgument(*model));
  if (config.data.sparse.size() != 1) return absl::OkStatus();
  const uint64_t bound = config.data.sparse[0].max_feature_num;
  if (bound == 0 || max_keys <= bound) return absl::OkStatus();
  model->set.push_back(absl::StrCat("layers.0.sparse.0.max_feature_num_per_sample=", max_keys));
  model->set.push_back("layers.0.sparse.0.max_nnz=0");
  console.Say(absl::StrCat("note: a sample of the new data has ", max_keys,
                           " keys; max_feature_num_per_sample grows from ", bound));
  return absl::OkStatus();
}

}  // namespace

absl::Status TakeTables(TrainFlags* flags) {
  CISTERN_RETURN_IF_ERROR(app::CheckNameForJson("--test", flags->table.test));
  CISTERN_ASSIGN_OR_RETURN(flags->model.config, TableOf(flags->model.config, flags->tables));
  return absl::OkStatus();
}

absl::Status TakeMore(const app::WorkerRank& worker, Console& console, TrainFlags* flags) {
  if (flags->more.empty()) return absl::OkStatus();
  if (!flags->resume) {
    return WithFix(absl::InvalidArgumentError("--more continues a finished run"),
                   "add --resume and --out, the folder of the run");
  }
  if (flags->out.empty()) {
    return WithFix(
        absl::InvalidArgumentError("--more continues a finished run, whose folder is not known"),
        "add --out, the folder of the run");
  }
  CISTERN_ASSIGN_OR_RETURN(const ModelConfig config, ReadModelArgument(flags->model));
  MoreOptions options;
  options.out = flags->out;
  options.files = flags->more;
  options.eval_source = config.data.eval_source;
  options.valid = flags->table.evaluation();
  options.test = flags->table.final_test();
  options.workers = worker.world_size;
  options.model_negatives = config.cistern.negative_rate;
  options.table_negatives = flags->table.negative_rate;
  CISTERN_ASSIGN_OR_RETURN(const MoreData data, ConvertMore(options, console));
  const auto set = [flags](const char* key, const std::string& value) {
    flags->model.set.push_back(absl::StrCat(key, "=", nlohmann::json(value).dump()));
  };
  CISTERN_RETURN_IF_ERROR(app::CheckNameForJson("--more", data.source));
  if (config.cistern.stream) set("cistern.stream.source", "");  // the run was on a stream
  set("layers.0.source", data.source);
  if (!data.eval_source.empty()) set("layers.0.eval_source", data.eval_source);
  flags->warnings = data.warnings;
  return GrowBound(data.max_keys, console, &flags->model);
}

absl::Status CheckStream(const TrainFlags& flags) {
  if (flags.stream.empty()) return absl::OkStatus();
  if (IsTable(flags.model.config)) {
    return WithFix(absl::InvalidArgumentError("--stream needs a model, and '" + flags.model.config +
                                              "' is a table"),
                   "train the table first (cistern train " + flags.model.config +
                       " --out RUN), then continue on the stream: cistern train RUN --stream " +
                       flags.stream);
  }
  if (flags.more.empty()) return absl::OkStatus();
  return WithFix(absl::InvalidArgumentError("--stream and --more exclude each other"),
                 "train the files with --more first, then the stream");
}

void AddFinalTest(const EvalSummary& score, const std::string& file, Report* report) {
  report->json["test"] = {{"file", file},
                          {"samples", score.samples},
                          {"auc", score.auc ? nlohmann::ordered_json(*score.auc) : nullptr},
                          {"logloss", score.logloss}};
  report->text += score.auc ? absl::StrFormat("test auc             %.6f", *score.auc)
                            : absl::StrCat("test auc             none: ", score.auc_note);
  absl::StrAppendFormat(&report->text, "  (%d samples of %s)\ntest log loss        %.6f\n",
                        score.samples, file, score.logloss);
}

}  // namespace cistern
