// A program that this one starts and ends: the servers of the demo.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/base/status.h"

namespace cistern {

// A running child process. It dies with its parent, and gets no Ctrl-C of the parent's terminal:
// the parent decides when it stops.
//
// Threads: one at a time.
class ChildProcess {
 public:
  // Starts argv[0] with its standard output in a pipe (ReadLine) and its standard error in the file
  // `log` (created; appended). No shell, no search path.
  static absl::StatusOr<std::unique_ptr<ChildProcess>> Start(const std::vector<std::string>& argv,
                                                             const std::string& log);
  // Stops the process if it still runs.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }
  // The next line of its standard output, without the line end.
  // kDeadlineExceeded after `timeout`; kInternal, with the end of its log, if it ended before.
  absl::StatusOr<std::string> ReadLine(absl::Duration timeout);
  bool Running();
  // After the end: its exit code, or 128 + the signal that ended it.
  int exit_code() const { return exit_code_; }
  // What it wrote on standard error, the last 2,000 bytes.
  std::string LogEnd() const;
  void Signal(int signal);
  // SIGTERM, then SIGKILL after `patience`; waits for the end.
  void Stop(absl::Duration patience);

 private:
  ChildProcess(pid_t pid, int output, std::string name, std::string log)
      : pid_(pid), output_(output), name_(std::move(name)), log_(std::move(log)) {}

  void NoteEnd(int result);  // of waitpid

  const pid_t pid_;
  const int output_;  // read end of the pipe
  const std::string name_, log_;
  std::string buffer_;
  bool ended_ = false;
  int exit_code_ = 0;
};

// The folder of the running program's file.
absl::StatusOr<std::string> ProgramFolder();

}  // namespace cistern
