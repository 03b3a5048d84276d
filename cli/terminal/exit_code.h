// The exit codes of the programs, and the one place that turns an error into one of them.
//
// absl::Status carries the code; two payloads carry what only the caller knows: that bytes which
// turned out corrupt belong to a saved model (5) and not to a data set (4), and how to mend it.
#pragma once

#include <string>

#include "common/base/status.h"

namespace cistern {

enum class ExitCode : int {
  kDone = 0,
  kFailed = 1,
  kUsage = 2,          // command line or configuration
  kUnreachable = 3,    // a server of the cluster
  kBadData = 4,        // a data set
  kBadCheckpoint = 5,  // a commit or a saved model
  kInterrupted = 130,  // by a signal, with its state saved
};

// kInvalidArgument, kAlreadyExists and kPermissionDenied are usage; kUnavailable and
// kDeadlineExceeded unreachable; kDataLoss and kOutOfRange bad data, or a bad checkpoint after
// FromCheckpoint; kCancelled interrupted; OK done; everything else failed.
ExitCode ExitCodeOf(const absl::Status& status);

// Marks an error as one of reading a saved model. OK stays OK.
absl::Status FromCheckpoint(absl::Status status);

// Attaches what a person can do about it; printed as a line of its own. OK stays OK.
absl::Status WithFix(absl::Status status, const std::string& fix);
// Empty where there is none.
std::string FixOf(const absl::Status& status);

// AddContext that keeps the marks of this header.
absl::Status AddContextAndMarks(const absl::Status& status, const std::string& context);

// The text with its control characters as in C ("\n"): messages quote what people and files say.
std::string OneLine(absl::string_view text);

// "error: <message>\n", and "fix: <fix>\n" where there is one, each a line.
std::string ErrorText(const absl::Status& status);

}  // namespace cistern
