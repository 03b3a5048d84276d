#include "python/binding/module.h"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "app/data/table_file.h"
#include "app/predict/predict.h"
#include "app/run/run_recipe.h"
#include "app/train/train_data.h"
#include "app/train/train_json.h"
#include "app/train/train_run.h"
#include "app/train/train_stream.h"
#include "cli/terminal/progress.h"
#include "python/binding/arrays.h"
#include "python/binding/errors.h"
#include "python/binding/fleet.h"
#include "python/binding/interrupt.h"
#include "python/binding/job_run.h"
#include "python/binding/keywords.h"
#include "python/binding/text_jobs.h"
#include "worker/model/layer/layer_list.h"
#include "worker/train/jobs.h"

namespace cistern::python {
namespace {

using namespace nb::literals;  // NOLINT

struct JobArguments {
  std::string model;  // path of the model file
  std::vector<std::string> set;
  std::string out;
  int threads = 0;
};

// In place of a model file, the folder of a run names the one in it.
absl::Status ReadFromRun(app::ModelOptions* model) {
  std::string folder;
  return WithOptions(app::ResolveRunFolder(model, &folder), {"config"});
}

JobOptions OptionsOf(const JobArguments& arguments, const std::atomic<bool>* interrupted) {
  JobOptions options;
  options.out_dir = arguments.out;
  options.threads = arguments.threads;
  options.interrupted = interrupted;
  return options;
}

// The model of a training on a fleet of this process, with the data that it names or `stream`.
absl::StatusOr<model::ModelConfig> ReadForFleet(const JobArguments& arguments,
                                                const app::StreamOptions& stream,
                                                JobOptions* options) {
  app::TrainRunOptions run;
  run.model.config = arguments.model;
  run.model.set = arguments.set;
  run.out = arguments.out;
  run.resume = options->resume;
  run.more = options->more;
  CISTERN_RETURN_IF_ERROR(ReadFromRun(&run.model));
  CISTERN_RETURN_IF_ERROR(app::ApplyStream(stream, &run));
  options->resume = run.resume;
  options->more = run.more;
  CISTERN_ASSIGN_OR_RETURN(
      model::ModelConfig config,
      model::LoadModelConfig(run.model.config, run.model.set, model::LayerGrammars()));
  if (config.cistern.stream) {
    CISTERN_RETURN_IF_ERROR(app::RecipeOfStream(arguments.out, &config).status());
  }
  return config;
}

std::string RunTrain(const std::shared_ptr<Fleet>& fleet, const JobArguments& arguments,
                     bool resume, bool more, bool again, const app::StreamOptions& stream,
                     nb::object on_line) {
  const std::shared_ptr<app::FleetSession> session = fleet->session();
  ParameterClient& client = session->client();
  Listener listener(std::move(on_line));
  JobOptions options = OptionsOf(arguments, &listener.interrupted);
  options.resume = resume;
  options.more = more;
  options.again = again;
  options.save_model = !arguments.out.empty();
  options.progress = [&listener](const Progress& progress) {
    listener.Say(cli::PlainLine(progress));
  };
  TrainSummary done;
  const absl::Status status = RunStoppably(
      [&]() -> absl::Status {
        CISTERN_ASSIGN_OR_RETURN(const model::ModelConfig config,
                                 ReadForFleet(arguments, stream, &options));
        CISTERN_ASSIGN_OR_RETURN(done, Train(config, client, options));
        return absl::OkStatus();
      },
      [&listener] { listener.interrupted = true; });
  listener.Rethrow();
  Check(status);
  return TextOf(app::JsonOf(done));
}

std::string RunEvaluate(const std::shared_ptr<Fleet>& fleet, const JobArguments& arguments,
                        const std::vector<std::string>& files, const std::string& predictions) {
  auto done = std::make_shared<EvalSummary>();
  // The call only reads, so Ctrl-C leaves it behind; it keeps the session.
  Check(RunInterruptibly(
      [session = fleet->session(), arguments, files, predictions, done]() -> absl::Status {
        CISTERN_ASSIGN_OR_RETURN(
            const model::ModelConfig config,
            model::LoadModelConfig(arguments.model, arguments.set, model::LayerGrammars()));
        const JobOptions options = OptionsOf(arguments, nullptr);
        ParameterClient& client = session->client();
        if (predictions.empty()) {
          CISTERN_ASSIGN_OR_RETURN(*done, Evaluate(config, client, files, options));
        } else {
          CISTERN_ASSIGN_OR_RETURN(*done, Predict(config, client, files, predictions, options));
        }
        return absl::OkStatus();
      },
      nullptr));
  return TextOf(app::JsonOf(*done));
}

struct RunArguments {
  std::string servers;  // empty: in this process
  uint64_t embedded_servers = 1;
  double memory_limit_mb = 0;  // of each of them
  bool resume = false, overwrite = false, continues = false;
  std::string device;
  app::TrainData data;
  std::string publish;  // the serving folder; empty: none
};

app::ModelOptions ModelOf(const JobArguments& arguments, const std::string& servers) {
  app::ModelOptions model;
  model.config = arguments.model;
  model.set = arguments.set;
  model.threads = static_cast<uint64_t>(arguments.threads);
  model.fleet.servers = servers;
  model.fleet.tls = TlsFromEnvironment();
  model.fleet.program = "cistern_ps.train";
  return model;
}

// The options of a run of its own folder, with its data.
absl::StatusOr<app::TrainRunOptions> RunOptionsOf(const JobArguments& arguments,
                                                  const RunArguments& run,
                                                  const app::TableCalls& calls) {
  app::TrainRunOptions options;
  options.model = ModelOf(arguments, run.servers);
  options.model.device = run.device;
  options.model.fleet.embedded_servers = run.embedded_servers;
  options.model.fleet.memory_limit_mb = run.memory_limit_mb;
  options.out = arguments.out;
  options.resume = run.resume;
  options.overwrite = run.overwrite;
  options.continues = run.continues;
  options.publish = run.publish;
  if (!app::IsTable(options.model.config)) {
    CISTERN_RETURN_IF_ERROR(ReadFromRun(&options.model));
  }
  CISTERN_RETURN_IF_ERROR(app::ApplyTrainData(run.data, &options, calls));
  return options;
}

std::string PublishedLine(const ServingWritten& written, double seconds) {
  return absl::StrFormat("event=published commit=%d rows=%d bytes=%d seconds=%.3f",
                         written.version.commit, written.rows, written.bytes, seconds);
}

// A run with a folder of its own: `cistern train` in this process.
std::string TrainRun(const JobArguments& arguments, const RunArguments& run, nb::object on_line) {
  Listener listener(std::move(on_line));
  app::TrainRunCalls calls;
  calls.interrupted = &listener.interrupted;
  calls.note = [&listener](const std::string& line) { listener.Say(line); };
  calls.published = [&listener](const ServingWritten& written, double seconds) {
    listener.Say(PublishedLine(written, seconds));
  };
  calls.progress = [&listener](const Progress& progress) {
    listener.Say(cli::PlainLine(progress));
    return true;
  };
  const app::TableCalls tables = TableCallsOf(listener);
  app::TrainRunResult done;
  const absl::Status status = RunStoppably(
      [&]() -> absl::Status {
        CISTERN_ASSIGN_OR_RETURN(const app::TrainRunOptions options,
                                 RunOptionsOf(arguments, run, tables));
        CISTERN_ASSIGN_OR_RETURN(model::ModelConfig config, app::ReadModelConfig(options.model));
        for (const std::string& note : config.notes) listener.Say("note: " + note);
        CISTERN_ASSIGN_OR_RETURN(done, app::TrainRun(std::move(config), options, calls));
        return absl::OkStatus();
      },
      [&listener] { listener.interrupted = true; });
  listener.Rethrow();
  Check(status);
  nlohmann::ordered_json json = app::JsonOf(done.summary);
  json["report"] = done.page;
  if (done.published) json["published"] = app::JsonOf(*done.published);
  return TextOf(json);
}

app::EvaluateOptions EvaluateOptionsOf(const JobArguments& arguments, const std::string& model_dir,
                                       const std::string& servers,
                                       const std::vector<std::string>& data,
                                       const std::vector<std::string>& add_columns) {
  app::EvaluateOptions options;
  options.model = ModelOf(arguments, servers);
  options.model_dir = model_dir;
  options.data = data;
  options.add_columns = add_columns;
  return options;
}

std::string EvaluateRun(const JobArguments& arguments, const std::string& model_dir,
                        const std::string& servers, const std::vector<std::string>& data,
                        const std::vector<std::string>& add_columns) {
  auto done = std::make_shared<EvalSummary>();
  Check(RunInterruptibly(
      [options = EvaluateOptionsOf(arguments, model_dir, servers, data, add_columns),
       done]() -> absl::Status {
        CISTERN_ASSIGN_OR_RETURN(*done, app::EvaluateModel(options, [](const std::string&) {}));
        return absl::OkStatus();
      },
      nullptr));
  return TextOf(app::JsonOf(*done));
}

struct Predictions {
  std::vector<float> labels, predictions;
  size_t samples = 0;
  bool labeled = true;
};

// The labels and the predictions of all samples, each [samples, label_dim]; None in place of the
// labels of rows of text that have none.
nb::tuple PredictRun(const JobArguments& arguments, const std::string& model_dir,
                     const std::string& servers, const std::vector<std::string>& data,
                     const std::vector<std::string>& add_columns, const std::string& output,
                     const std::vector<std::string>& keep_columns) {
  app::PredictOptions options;
  static_cast<app::EvaluateOptions&>(options) =
      EvaluateOptionsOf(arguments, model_dir, servers, data, add_columns);
  options.output = output;
  options.text.keep = keep_columns;
  auto done = std::make_shared<Predictions>();
  Check(RunInterruptibly(
      [options, done]() -> absl::Status {
        const auto keep = [&](absl::Span<const float> labels, absl::Span<const float> predictions) {
          done->labels.insert(done->labels.end(), labels.begin(), labels.end());
          done->predictions.insert(done->predictions.end(), predictions.begin(), predictions.end());
          return absl::OkStatus();
        };
        CISTERN_ASSIGN_OR_RETURN(const app::PredictResult result,
                                 app::PredictFiles(
                                     options, [](const std::string&) {}, keep));
        done->samples = result.has_rows ? result.summary.samples : 0;
        done->labeled = result.labeled;
        return absl::OkStatus();
      },
      nullptr));
  const size_t rows = done->samples, columns = rows == 0 ? 1 : done->predictions.size() / rows;
  nb::object labels = nb::none();
  if (done->labeled) labels = nb::cast(ToNumpy(std::move(done->labels), {rows, columns}));
  return nb::make_tuple(labels, ToNumpy(std::move(done->predictions), {rows, columns}));
}

using Path = std::filesystem::path;  // of any bytes, as os.fsencode makes them

app::TrainData ReadData(const std::vector<Path>& tables, const std::vector<Path>& more,
                        const Path& stream, bool once, nb::dict given) {
  Keywords keywords(std::move(given));
  app::TrainData data;
  data.table = ReadTableOptions(&keywords);
  keywords.ReadPath("valid", &data.table.valid);
  keywords.ReadPath("test", &data.table.test);
  keywords.CheckAllRead("train");
  data.tables = TextsOf(tables);
  data.more = TextsOf(more);
  data.stream = {stream.string(), once};
  return data;
}

}  // namespace

void BindJobs(nb::module_& module) {
  module.def(
      "train",
      [](const std::shared_ptr<Fleet>& fleet, const std::string& model,
         const std::vector<std::string>& set, const std::string& out, int threads, bool resume,
         bool more, bool again, const Path& stream, bool once, nb::object on_line) {
        return RunTrain(fleet, {model, set, out, threads}, resume, more, again,
                        {stream.string(), once}, std::move(on_line));
      },
      "fleet"_a, "model"_a, "set"_a, "out"_a, "threads"_a, "resume"_a, "more"_a, "again"_a,
      "stream"_a, "once"_a, "on_line"_a.none());
  module.def(
      "evaluate",
      [](const std::shared_ptr<Fleet>& fleet, const std::string& model,
         const std::vector<std::string>& set, int threads, const std::vector<std::string>& files,
         const std::string& predictions) {
        return RunEvaluate(fleet, {model, set, "", threads}, files, predictions);
      },
      "fleet"_a, "model"_a, "set"_a, "threads"_a, "files"_a, "predictions"_a);
  module.def(
      "train_run",
      [](const Path& model, const std::vector<std::string>& set, const Path& out,
         const std::string& servers, uint64_t embedded_servers, double memory_limit_mb, bool resume,
         bool overwrite, bool continues, int threads, const std::string& device, const Path& stream,
         bool once, const Path& publish, const std::vector<Path>& tables,
         const std::vector<Path>& more, nb::dict table, nb::object on_line) {
        return TrainRun(
            {model.string(), set, out.string(), threads},
            {servers, embedded_servers, memory_limit_mb, resume, overwrite, continues, device,
             ReadData(tables, more, stream, once, std::move(table)), publish.string()},
            std::move(on_line));
      },
      "model"_a, "set"_a, "out"_a, "servers"_a, "embedded_servers"_a, "memory_limit_mb"_a,
      "resume"_a, "overwrite"_a, "continues"_a, "threads"_a, "device"_a, "stream"_a, "once"_a,
      "publish"_a, "tables"_a, "more"_a, "table"_a, "on_line"_a.none());
  module.def(
      "evaluate_run",
      [](const Path& model, const std::vector<std::string>& set, const Path& model_dir,
         const std::string& servers, const std::vector<Path>& data,
         const std::vector<std::string>& add_column, int threads) {
        return EvaluateRun({model.string(), set, "", threads}, model_dir.string(), servers,
                           TextsOf(data), add_column);
      },
      "model"_a, "set"_a, "model_dir"_a, "servers"_a, "data"_a, "add_column"_a, "threads"_a);
  module.def(
      "predict_run",
      [](const Path& model, const std::vector<std::string>& set, const Path& model_dir,
         const std::string& servers, const std::vector<Path>& data,
         const std::vector<std::string>& add_column, const Path& output,
         const std::vector<std::string>& keep, int threads) {
        return PredictRun({model.string(), set, "", threads}, model_dir.string(), servers,
                          TextsOf(data), add_column, output.string(), keep);
      },
      "model"_a, "set"_a, "model_dir"_a, "servers"_a, "data"_a, "add_column"_a, "output"_a,
      "keep"_a, "threads"_a);
}

}  // namespace cistern::python
