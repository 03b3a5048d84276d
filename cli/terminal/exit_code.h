// The exit codes of the programs, and the one place that turns an error into one of them.
//
// absl::Status carries the code. Two payloads carry what only the caller knows: that corrupt bytes
// belong to a checkpoint (5) and not to a data set (4), and what the user can do about it.
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

// The exit code of a status. kUnimplemented: a file of a kind that this program cannot read.
//
// clang-format off
//   OK                                                    kDone
//   kInvalidArgument, kAlreadyExists, kPermissionDenied   kUsage
//   kUnavailable, kDeadlineExceeded                       kUnreachable
//   kDataLoss, kOutOfRange, kUnimplemented                kBadData, or kBadCheckpoint
//   kCancelled                                            kInterrupted
//   anything else                                         kFailed
// clang-format on
ExitCode ExitCodeOf(const absl::Status& status);

// Marks an error as one of reading a commit or a saved model. OK stays OK.
absl::Status FromCheckpoint(absl::Status status);

// Attaches what the user can do about the error; printed on its own line. OK stays OK.
absl::Status WithFix(absl::Status status, const std::string& fix);
// The attached fix; empty without one.
std::string FixOf(const absl::Status& status);

// AddContext (common/base/status.h) that also keeps the payloads of this header.
absl::Status AddContextAndMarks(const absl::Status& status, const std::string& context);

// The text with its control characters escaped as in C ("\n"), because messages quote user input
// and file contents.
std::string OneLine(absl::string_view text);

// "error: <message>\n", followed by "fix: <fix>\n" if there is a fix.
std::string ErrorText(const absl::Status& status);

}  // namespace cistern
