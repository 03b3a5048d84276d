#include "app/train/train_data.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "app/data/more_data.h"
#include "app/data/table_file.h"
#include "app/run/run_folder.h"

namespace cistern::app {
namespace {

absl::Status RefuseData(const std::string& what, const std::vector<std::string>& options,
                        const std::string& fix) {
  return WithFix(WithOptions(absl::InvalidArgumentError(what), options), fix);
}

absl::Status CheckStream(const TrainData& data, const TrainRunOptions& options) {
  if (data.stream.source.empty()) return absl::OkStatus();
  if (IsTable(options.model.config)) {
    return RefuseData(
        absl::StrCat("a stream needs a model, and '", options.model.config, "' is a table"),
        {"stream", "out"}, "train the table first, then continue that run on the stream");
  }
  if (data.more.empty()) return absl::OkStatus();
  return RefuseData("a stream and more data exclude each other", {"stream", "more"},
                    "train the files first, then the stream");
}

// If the model is a table: makes model, recipe and data below the folder of the run.
absl::Status ApplyTable(const TrainData& data, TrainRunOptions* options, const TableCalls& calls) {
  const std::string table = options->model.config;
  TableOptions given = data.of_table();
  const std::string option = OptionWithoutTable(table, given);
  if (!option.empty()) {
    return RefuseData(
        absl::StrCat(table, " is a model file, and the option is for a table (*.csv, *.tsv)"),
        {option}, "leave it out");
  }
  // With an option for tables a table has any name; what is missing is reported as such later.
  std::error_code error;
  const bool has_any_name = !GivenOption(given).empty() && std::filesystem::exists(table, error);
  if (!IsTable(table) && !has_any_name) return absl::OkStatus();
  if (options->resume || !data.more.empty()) {
    return RefuseData(absl::StrCat(table, " is a table, not a run to resume"), {"resume", "more"},
                      "name the run; more data is added to that");
  }
  if (options->out.empty()) {
    return RefuseData("no folder for the run was named", {"out"}, "name a new folder");
  }
  if (options->worker.world_size > 1) {
    return WithFix(absl::InvalidArgumentError(
                       absl::StrCat(table, ": a table cannot be converted by several workers")),
                   absl::StrCat("cistern init ", table, ", then convert the data once"));
  }
  CISTERN_RETURN_IF_ERROR(PrepareRunFolder(RunFolderOf(*options)));
  given.set = options->model.set;
  CISTERN_ASSIGN_OR_RETURN(TableModel made, MakeTableModel(table, given, options->out, calls));
  options->model.config = std::move(made.model);
  options->warnings = std::move(made.warnings);
  return absl::OkStatus();
}

// Raises the bound on the keys of a sample to what converted data needs. It changes no prediction.
absl::Status GrowBound(uint64_t max_keys, const JobCalls& calls, ModelOptions* model) {
  CISTERN_ASSIGN_OR_RETURN(const model::ModelConfig config, ReadModelConfig(*model));
  if (config.data.sparse.size() != 1) return absl::OkStatus();
  const uint64_t bound = config.data.sparse[0].max_feature_num;
  if (bound == 0 || max_keys <= bound) return absl::OkStatus();
  model->set.push_back(absl::StrCat("layers.0.sparse.0.max_feature_num_per_sample=", max_keys));
  model->set.push_back("layers.0.sparse.0.max_nnz=0");
  calls.Note(absl::StrCat("note: a sample of the new data has ", max_keys,
                          " keys; max_feature_num_per_sample grows from ", bound));
  return absl::OkStatus();
}

// Makes data.more the data of the run.
absl::Status ApplyMore(const TrainData& data, TrainRunOptions* options, const TableCalls& calls) {
  if (data.more.empty()) return absl::OkStatus();
  if (!options->resume || options->out.empty()) {
    return RefuseData("more data continues a finished run, in its folder",
                      {"more", "resume", "out"}, "resume the run in its folder");
  }
  CISTERN_ASSIGN_OR_RETURN(const model::ModelConfig config, ReadModelConfig(options->model));
  MoreOptions more;
  more.out = options->out;
  more.files = data.more;
  more.eval_source = config.data.eval_source;
  more.valid = data.table.evaluation();
  more.test = data.table.final_test();
  more.workers = options->worker.world_size;
  more.share = config.cistern.calibrate;
  more.eval_negatives = config.cistern.eval_negative_rate;
  more.model_negatives = config.cistern.negative_rate;
  more.table_negatives = data.table.negative_rate;
  more.columns = data.table.columns;
  more.add_columns = data.table.add_columns;
  more.delimiter = data.table.delimiter;
  CISTERN_ASSIGN_OR_RETURN(MoreData converted, ConvertMore(more, calls));
  CISTERN_RETURN_IF_ERROR(WithOptions(CheckNameForJson("the data", converted.source), {"more"}));
  const auto set = [options](const char* key, const std::string& value) {
    options->model.set.push_back(absl::StrCat(key, "=", nlohmann::json(value).dump()));
  };
  if (config.cistern.stream) set("cistern.stream.source", "");  // the run was on a stream
  set("layers.0.source", converted.source);
  if (converted.share) {
    options->model.set.push_back(absl::StrCat("cistern.calibrate=", *converted.share));
    options->model.set.push_back(
        absl::StrCat("cistern.calibrate_exact=", converted.exact_share ? "true" : "false"));
  }
  if (!converted.eval_source.empty()) set("layers.0.eval_source", converted.eval_source);
  if (!converted.eval_source.empty() && converted.eval_negatives != more.eval_negatives) {
    options->model.set.push_back(
        absl::StrCat("cistern.eval_negative_rate=", converted.eval_negatives));
  }
  options->warnings = std::move(converted.warnings);
  options->more = true;
  return GrowBound(converted.max_keys, calls, &options->model);
}

}  // namespace

TableOptions TrainData::of_table() const {
  TableOptions options = table;
  if (more.empty()) return options;
  options.valid = options.test = "";
  options.negative_rate = 0;
  options.columns.clear();
  options.add_columns.clear();
  options.delimiter = 0;
  return options;
}

absl::Status ApplyTrainData(const TrainData& data, TrainRunOptions* options,
                            const TableCalls& calls) {
  const TableOptions& table = data.table;
  CISTERN_RETURN_IF_ERROR(WithOptions(CheckNameForJson("the test data", table.test), {"test"}));
  CISTERN_ASSIGN_OR_RETURN(options->model.config, JoinTables(options->model.config, data.tables));
  if (!IsTable(options->model.config)) {  // which may be a folder, too
    std::string folder;
    CISTERN_RETURN_IF_ERROR(ResolveRunFolder(&options->model, &folder));
    if (options->out.empty()) options->out = folder;
  }
  options->final_test_name = table.final_test();
  if (!options->final_test_name.empty()) {
    options->final_test = absl::StrCat(options->out, "/data/", kFinalTest, "/file_list.txt");
  }
  CISTERN_RETURN_IF_ERROR(CheckStream(data, *options));
  CISTERN_RETURN_IF_ERROR(ApplyStream(data.stream, options));
  CISTERN_RETURN_IF_ERROR(ApplyTable(data, options, calls));
  return ApplyMore(data, options, calls);
}

}  // namespace cistern::app
