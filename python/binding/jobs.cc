#include "python/binding/jobs.h"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "python/binding/fleet.h"
#include "python/binding/gil.h"
#include "python/binding/interrupt.h"
#include "worker/train/jobs.h"
#include "worker/train/metric_json.h"

namespace cistern::python {
namespace {

using namespace nb::literals;  // NOLINT

struct JobArguments {
  std::string model;  // path of the model file
  std::vector<std::string> set;
  std::string out;
  int threads = 0;
};

JobOptions OptionsOf(const JobArguments& arguments, const std::atomic<bool>* interrupted) {
  JobOptions options;
  options.out_dir = arguments.out;
  options.threads = arguments.threads;
  options.interrupted = interrupted;
  return options;
}

// The progress callback: calls on_event(event, iteration, loss, seconds). What that raises stops
// the job after the pass, and is thrown once the job has ended.
class Listener {
 public:
  explicit Listener(nb::object on_event) : on_event_(std::move(on_event)) {}

  void Show(const Progress& progress) {
    AcquireGil gil;
    try {
      if (!on_event_.is_none()) {
        on_event_(progress.event, progress.iter, progress.loss.value_or(0), progress.seconds);
      }
    } catch (nb::python_error& error) {
      if (raised_ == nullptr) raised_ = std::make_unique<nb::python_error>(std::move(error));
      interrupted = true;
    }
  }
  void Rethrow() {
    if (raised_ != nullptr) throw nb::python_error(std::move(*raised_));
  }

  std::atomic<bool> interrupted{false};

 private:
  nb::object on_event_;
  std::unique_ptr<nb::python_error> raised_;
};

std::string RunTrain(const std::shared_ptr<Fleet>& fleet, const JobArguments& arguments,
                     bool resume, nb::object on_event) {
  const std::shared_ptr<FleetSession> session = fleet->session();
  ParameterClient& client = session->client();
  Listener listener(std::move(on_event));
  JobOptions options = OptionsOf(arguments, &listener.interrupted);
  options.resume = resume;
  options.save_model = !arguments.out.empty();
  options.progress = [&listener](const Progress& progress) { listener.Show(progress); };
  TrainSummary done;
  const absl::Status status = RunStoppably(
      [&]() -> absl::Status {
        CISTERN_ASSIGN_OR_RETURN(const ModelConfig config,
                                 LoadModelConfig(arguments.model, arguments.set));
        CISTERN_ASSIGN_OR_RETURN(done, Train(config, client, options));
        return absl::OkStatus();
      },
      [&listener] { listener.interrupted = true; });
  listener.Rethrow();
  Check(status);
  nlohmann::ordered_json json;
  json["iterations"] = done.iterations;
  json["samples"] = done.samples;
  json["passes"] = done.passes;
  json["epochs"] = done.epochs;
  json["seconds"] = done.seconds;
  json["loss"] = done.loss;
  if (done.auc) json["auc"] = *done.auc;
  if (done.logloss) json["logloss"] = *done.logloss;
  json["stopped_by"] = done.stopped_by;
  return json.dump();
}

std::string RunEvaluate(const std::shared_ptr<Fleet>& fleet, const JobArguments& arguments,
                        const std::vector<std::string>& files, const std::string& predictions) {
  auto done = std::make_shared<EvalSummary>();
  // The call only reads, so Ctrl-C leaves it behind; it keeps the session.
  Check(RunInterruptibly(
      [session = fleet->session(), arguments, files, predictions, done]() -> absl::Status {
        CISTERN_ASSIGN_OR_RETURN(const ModelConfig config,
                                 LoadModelConfig(arguments.model, arguments.set));
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
  nlohmann::ordered_json json;
  json["samples"] = done->samples;
  json["positives"] = done->positives;
  json["unseen_keys"] = done->unseen_keys;
  if (done->auc) json["auc"] = *done->auc;
  json["logloss"] = done->logloss;
  json["seconds"] = done->seconds;
  return json.dump();
}

}  // namespace

void BindJobs(nb::module_& module) {
  module.def(
      "train",
      [](const std::shared_ptr<Fleet>& fleet, const std::string& model,
         const std::vector<std::string>& set, const std::string& out, int threads, bool resume,
         nb::object on_event) {
        return RunTrain(fleet, {model, set, out, threads}, resume, std::move(on_event));
      },
      "fleet"_a, "model"_a, "set"_a, "out"_a, "threads"_a, "resume"_a, "on_event"_a.none());
  module.def(
      "evaluate",
      [](const std::shared_ptr<Fleet>& fleet, const std::string& model,
         const std::vector<std::string>& set, int threads, const std::vector<std::string>& files,
         const std::string& predictions) {
        return RunEvaluate(fleet, {model, set, "", threads}, files, predictions);
      },
      "fleet"_a, "model"_a, "set"_a, "threads"_a, "files"_a, "predictions"_a);
}

}  // namespace cistern::python
