// Errors as values: two macros that propagate an absl::Status, and one way to add context to it.
//
// What each code means in Cistern, and what a caller may do:
//   kInvalidArgument    the caller's configuration, shape or name is wrong       exit code 2
//   kAlreadyExists, kPermissionDenied   the name is taken; this user has no access        2
//   kDataLoss, kOutOfRange   a corrupt file; a record, count or key out of bounds   4 (state: 5)
//   kUnimplemented      a file of a kind that this program cannot read            4
//   kNotFound           no such table, file or key                                1
//   kFailedPrecondition stale term, other schema, other cluster, wrong pass, a lock held  1
//   kAborted            a pass's staging is lost; train it again from the last commit   1
//   kUnavailable, kDeadlineExceeded   a server is not reached, stopping or late; may be retried   3
//   kCancelled          interrupted by a signal, with the state saved             130
//   kResourceExhausted, kInternal   disk, memory or a budget is full; anything else   1
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace cistern {

// Returns `status` with "context: " prepended to its message; OK stays OK.
inline absl::Status AddContext(const absl::Status& status, const std::string& context) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat(context, ": ", status.message()));
}

}  // namespace cistern

#define CISTERN_CONCAT_INNER(a, b) a##b
#define CISTERN_CONCAT(a, b) CISTERN_CONCAT_INNER(a, b)

// Returns the status of `expression` from the enclosing function unless it is OK. (The variable's
// name contains a counter, because the expression may hold a lambda that uses these macros too.)
#define CISTERN_RETURN_IF_ERROR(expression) \
  CISTERN_RETURN_IF_ERROR_INNER(CISTERN_CONCAT(cistern_status_, __COUNTER__), expression)
#define CISTERN_RETURN_IF_ERROR_INNER(status, expression) \
  do {                                                    \
    absl::Status status = (expression);                   \
    if (!status.ok()) return status;                      \
  } while (false)

// CISTERN_ASSIGN_OR_RETURN(auto x, F()): x = *F(), or returns the status of F().
#define CISTERN_ASSIGN_OR_RETURN(target, expression) \
  CISTERN_ASSIGN_OR_RETURN_INNER(CISTERN_CONCAT(cistern_statusor_, __COUNTER__), target, expression)
#define CISTERN_ASSIGN_OR_RETURN_INNER(statusor, target, expression) \
  auto statusor = (expression);                                      \
  if (!statusor.ok()) return statusor.status();                      \
  target = std::move(statusor).value()
