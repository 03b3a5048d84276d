// Statuses as Python exceptions. Inside the bindings an error is thrown, since that is how nanobind
// reports one; no other part of Cistern throws.
#pragma once

#include <exception>
#include <string>
#include <utility>

#include "common/base/status.h"

namespace cistern::python {

// Becomes cistern_ps.Error, or the subclass for its exit code (cistern_ps/errors.py).
class StatusError : public std::exception {
 public:
  // report: what the job found although it failed, as JSON; empty: nothing.
  explicit StatusError(absl::Status status, std::string report = "")
      : status_(std::move(status)), report_(std::move(report)) {}
  const absl::Status& status() const { return status_; }
  const std::string& report() const { return report_; }
  const char* what() const noexcept override { return "a status of Cistern"; }

 private:
  absl::Status status_;
  std::string report_;
};

inline void Check(const absl::Status& status) {
  if (!status.ok()) throw StatusError(status);
}

template <class T>
T Take(absl::StatusOr<T> result) {
  Check(result.status());
  return *std::move(result);
}

// Makes StatusError a Python exception from now on. Call it once, while the module is made.
void TranslateErrors();

}  // namespace cistern::python
