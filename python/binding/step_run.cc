#include "python/binding/module.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "app/train/step_run.h"
#include "app/train/train_json.h"
#include "common/value/learning_rate.h"
#include "python/binding/errors.h"
#include "python/binding/fleet.h"
#include "python/binding/gil.h"
#include "python/binding/interrupt.h"
#include "python/binding/job_run.h"
#include "worker/model/layer/layer_list.h"
#include "worker/report/score_detail.h"
#include "worker/train/metric_json.h"

namespace cistern::python {
namespace {

using namespace nb::literals;  // NOLINT

std::shared_ptr<app::StepRun> Start(const std::shared_ptr<Fleet>& fleet, const std::string& model,
                                    const std::vector<std::string>& set, const std::string& out,
                                    int threads, bool resume, bool again) {
  auto run = std::make_shared<std::shared_ptr<app::StepRun>>();
  Check(RunInterruptibly(
      [session = fleet->session(), model, set, out, threads, resume, again, run]() -> absl::Status {
        CISTERN_ASSIGN_OR_RETURN(model::ModelConfig config,
                                 model::LoadModelConfig(model, set, model::LayerGrammars()));
        app::StepRunOptions options;
        options.out = out;
        options.threads = threads;
        options.resume = resume;
        options.again = again;
        CISTERN_ASSIGN_OR_RETURN(*run, app::StepRun::Start(std::move(config), session, options));
        return absl::OkStatus();
      },
      nullptr));
  return *run;
}

// Waits for the answer. After Ctrl-C the run is as it was: the answer is left for the next call.
void Await(app::StepRun& run) {
  while (true) {
    bool answered = false;
    {
      ReleaseGil no_gil;
      answered = run.Await(absl::Milliseconds(100));
    }
    if (answered) return;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }
}

// The loss of the step; None once the data is over.
std::optional<double> Step(app::StepRun& run, std::optional<double> learning_rate) {
  Await(run);  // an answer that Ctrl-C has left
  const uint64_t before = run.iterations();
  run.Ask({StepOrder::kStep, learning_rate});
  Await(run);
  return Take(run.HasStepped(before)) ? std::optional(run.loss()) : std::nullopt;
}

std::string Evaluate(app::StepRun& run) {
  Await(run);
  absl::StatusOr<Progress> progress;
  {
    ReleaseGil no_gil;
    progress = run.Evaluate();
  }
  Check(progress.status());
  nlohmann::ordered_json json;
  json["samples"] = progress->scores == nullptr ? 0 : progress->scores->samples;
  json["auc"] = progress->auc ? nlohmann::ordered_json(*progress->auc) : nullptr;
  json["logloss"] = progress->logloss ? nlohmann::ordered_json(*progress->logloss) : nullptr;
  PutMetrics(progress->metrics, &json);
  return TextOf(json);
}

std::string Stop(app::StepRun& run) {
  absl::StatusOr<TrainSummary> summary;
  {
    ReleaseGil no_gil;
    summary = run.Stop();
  }
  return TextOf(app::JsonOf(Take(std::move(summary))));
}

}  // namespace

void BindStepRun(nb::module_& module) {
  nb::class_<app::StepRun>(module, "StepRun")
      .def_prop_ro("iterations", &app::StepRun::iterations)
      .def_prop_ro("loss", &app::StepRun::loss)
      .def_prop_ro("has_ended", &app::StepRun::has_ended)
      .def("step", &Step, "learning_rate"_a.none())
      .def("evaluate", &Evaluate)
      .def("stop", &Stop);
  module.def(
      "learning_rate_at",
      [](double base, uint64_t warmup_steps, uint64_t decay_start, uint64_t decay_steps,
         double decay_power, double end, uint64_t step) {
        const LearningRateSchedule schedule = {base,        warmup_steps, decay_start,
                                               decay_steps, decay_power,  end};
        return schedule.At(step);
      },
      "learning_rate"_a, "warmup_steps"_a, "decay_start"_a, "decay_steps"_a, "decay_power"_a,
      "end_lr"_a, "step"_a);
  module.def("start_steps", &Start, "fleet"_a, "model"_a, "set"_a, "out"_a, "threads"_a, "resume"_a,
             "again"_a);
}

}  // namespace cistern::python
