// Errors as values: what an absl::Status carries besides its code and message, and two macros that
// propagate one.
//
// What each code means in Cistern, and what a caller may do. Each front-end maps (code, kind) once:
// the programs to an exit code (cli/terminal/exit_code.h), HTTP to a status
// (serve/server/http_reply.h), Python to a class (errors.py).
//   kInvalidArgument    the caller's configuration, shape or name is wrong
//   kAlreadyExists      the name is taken
//   kPermissionDenied   this user has no access
//   kDataLoss           a corrupt file
//   kOutOfRange         a record, count or key out of bounds
//   kUnimplemented      a file of a kind that this program cannot read
//   kNotFound           no such table, file or key
//   kFailedPrecondition stale term, other schema, other cluster, wrong pass, a lock held
//   kAborted            a pass's staging is lost; train it again from the last commit
//   kUnavailable        a server is not reached or is stopping; may be retried
//   kDeadlineExceeded   a server is late; may be retried
//   kCancelled          interrupted by a signal, with the state saved
//   kResourceExhausted  disk, memory or a budget is full
//   kInternal           anything else
//
// A message says what happened, where and why, in words that hold for every front-end: it never
// names a flag. What the user can do is data: a fix in words, and the options that decide the
// matter, which each front-end writes as its user types them. No code reads meaning out of a
// message: callers branch on the code and the kind.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace cistern {

// What happened, where callers act on more than the code. The numbers cross the wire: never reuse
// one.
enum class ErrorKind : uint8_t {
  kNone = 0,
  kBadCheckpoint = 1,  // what is damaged belongs to a commit or a saved model, not to a data set
  kOtherSchema = 2,    // the tables of the fleet are not those of the caller's model
  kCutShort = 3,       // a file ends before its contents do
  kNotText = 4,        // a file holds bytes that are not text
  kTable = 5,          // a table of text was given as a model file
};

// Sets the kind, in place of an earlier one. OK stays OK.
absl::Status WithKind(absl::Status status, ErrorKind kind);
// The kind; kNone without one, or if it is one that this build does not know.
ErrorKind KindOf(const absl::Status& status);

// Sets what the user can do about the error, in place of an earlier fix; an empty text changes
// nothing. OK stays OK.
absl::Status WithFix(absl::Status status, absl::string_view fix);
// The fix; empty without one.
std::string FixOf(const absl::Status& status);

// Sets the options that decide what failed, in place of earlier ones. Each is a member of the
// options of the function that failed, such as "key_bits"; one of another program or command has
// its name in front: "cistern-server.data_dir", "load.upgrade"; it may carry the value that would
// do, "keys=hash". OK stays OK.
absl::Status WithOptions(absl::Status status, const std::vector<std::string>& options);
// The options, in the order given.
std::vector<std::string> OptionsOf(const absl::Status& status);

// `status` with "context: " prepended to its message; keeps kind, fix and options. OK stays OK.
absl::Status AddContext(const absl::Status& status, absl::string_view context);

// `status` under another code or with another message; keeps kind, fix and options. OK stays OK.
absl::Status WithCode(const absl::Status& status, absl::StatusCode code);
absl::Status WithMessage(const absl::Status& status, absl::string_view message);

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
