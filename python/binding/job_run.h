// Jobs of app, called from Python: without the GIL, with lines of progress, ended by Ctrl-C.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/time/time.h"
#include "app/job_calls.h"
#include "python/binding/arrays.h"

namespace cistern::python {

// What a job says, as lines to on_line(text): what the program `cistern` writes to a log. What that
// raises ends the job, and is thrown once the job has ended.
//
// Threads: any; destroyed under the GIL.
class Listener {
 public:
  // on_line: may be None.
  explicit Listener(nb::object on_line);

  // Takes the GIL for the call. Nothing is said once the job is to end.
  void Say(const std::string& line);
  // Notes and amounts go to Say; `interrupted` stops the job.
  const app::JobCalls& calls() const { return calls_; }
  // Throws what on_line has raised.
  void Rethrow();

  std::atomic<bool> interrupted{false};

 private:
  nb::object on_line_;
  const absl::Time start_;
  app::JobCalls calls_;
  std::unique_ptr<nb::python_error> raised_;
};

// Runs `job`, which owns all that it touches, and returns its result, or throws its error. Ctrl-C
// is thrown at once; the job is asked to end and does so by itself.
using Job = std::function<absl::StatusOr<nlohmann::ordered_json>(const app::JobCalls& calls)>;
std::string RunJob(nb::object on_line, Job job);

// As text; what is not UTF-8, such as a path, becomes U+FFFD.
std::string TextOf(const nlohmann::ordered_json& json);

}  // namespace cistern::python
