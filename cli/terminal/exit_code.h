// The exit codes of the programs, and how a program prints an error.
#pragma once

#include <string>

#include "common/base/status.h"

namespace cistern::cli {

enum class ExitCode : int {
  kDone = 0,
  kFailed = 1,
  kUsage = 2,          // command line or configuration
  kUnreachable = 3,    // a server of the cluster
  kBadData = 4,        // a data set
  kBadCheckpoint = 5,  // a commit or a saved model
  kInterrupted = 130,  // by a signal, with its state saved
};

// The exit code of a status: the one place that maps (code, kind) to one.
//
// clang-format off
//   OK                                                    kDone
//   kInvalidArgument, kAlreadyExists, kPermissionDenied   kUsage
//   kUnavailable, kDeadlineExceeded                       kUnreachable
//   kDataLoss, kOutOfRange, kUnimplemented                kBadData, or kBadCheckpoint by kind
//   kCancelled                                            kInterrupted
//   anything else                                         kFailed
// clang-format on
ExitCode ExitCodeOf(const absl::Status& status);

// An option (OptionsOf) as it is typed: "key_bits" is "--key-bits", "load.upgrade" is "cistern load
// --upgrade", "cistern-server.data_dir" is "cistern-server --data_dir", "keys=hash" is
// "--keys=hash".
std::string FlagOf(absl::string_view option);

// The message, followed by the flags of its options in parentheses: "... (--keys, --key-bits)".
std::string MessageOf(const absl::Status& status);

// The text as ShownText has it, with control characters escaped as in C ("\n"), because messages
// quote user input and file contents.
std::string OneLine(absl::string_view text);

// "error: <MessageOf>\n", followed by "fix: <fix>\n" if there is a fix.
std::string ErrorText(const absl::Status& status);

}  // namespace cistern::cli
