#include "python/binding/job_run.h"

#include <nanobind/stl/string.h>

#include <utility>

#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "cli/terminal/activity.h"
#include "python/binding/errors.h"
#include "python/binding/gil.h"
#include "python/binding/interrupt.h"

namespace cistern::python {

Listener::Listener(nb::object on_line) : on_line_(std::move(on_line)), start_(absl::Now()) {
  calls_.stop = &interrupted;
  if (on_line_.is_none()) return;
  calls_.note = [this](const std::string& line) { Say(line); };
  calls_.amount = [this](const app::Amount& amount) {
    const double seconds = absl::ToDoubleSeconds(absl::Now() - start_);
    const std::string event = absl::StrReplaceAll(amount.what, {{" ", "_"}});
    Say(cli::ActivityLine(event, amount.unit, amount.done, amount.total, seconds,
                          /*terminal=*/false));
  };
}

void Listener::Say(const std::string& line) {
  if (interrupted || on_line_.is_none()) return;
  AcquireGil gil;
  try {
    on_line_(line);
  } catch (nb::python_error& error) {
    if (raised_ == nullptr) raised_ = std::make_unique<nb::python_error>(std::move(error));
    interrupted = true;
  }
}

void Listener::Rethrow() {
  if (raised_ != nullptr) throw nb::python_error(std::move(*raised_));
}

std::string RunJob(nb::object on_line, Job job) {
  const auto listener = std::make_shared<Listener>(std::move(on_line));
  const auto done = std::make_shared<nlohmann::ordered_json>();
  absl::Status status;
  try {
    // `kept` owns the listener, which is to be destroyed under the GIL.
    status = RunInterruptibly(
        [listener = listener.get(), job = std::move(job), done]() -> absl::Status {
          CISTERN_ASSIGN_OR_RETURN(*done, job(listener->calls()));
          return absl::OkStatus();
        },
        listener);
  } catch (const nb::python_error&) {
    listener->interrupted = true;
    throw;
  }
  listener->Rethrow();
  Check(status);
  return TextOf(*done);
}

std::string TextOf(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace cistern::python
