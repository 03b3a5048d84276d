// A child process that this program starts and stops, such as a server of the demo.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/base/status.h"

namespace cistern::app {

// A running child process. It dies with its parent. Ctrl-C in the parent's terminal does not reach
// it: the parent decides when it stops.
//
// Threads: one at a time.
class ChildProcess {
 public:
  // Starts argv[0] without a shell or a PATH search. Its standard output goes to a pipe (ReadLine),
  // its standard error is appended to the file `log`, which is created if missing.
  static absl::StatusOr<std::unique_ptr<ChildProcess>> Start(const std::vector<std::string>& argv,
                                                             const std::string& log);
  // Stops the process if it is still running.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }
  // The next line of the process's standard output, without the newline.
  // kDeadlineExceeded after `timeout`; kInternal, with the end of the log, if the process ended.
  absl::StatusOr<std::string> ReadLine(absl::Duration timeout);
  bool Running();
  // Once the process has ended: its exit code, or 128 + the signal that ended it.
  int exit_code() const { return exit_code_; }
  // The last 2,000 bytes of the process's standard error.
  std::string LogEnd() const;
  void Signal(int signal);
  // Sends SIGTERM, then SIGKILL after `patience`; waits until the process ends.
  void Stop(absl::Duration patience);

 private:
  ChildProcess(pid_t pid, int output, std::string name, std::string log)
      : pid_(pid), output_(output), name_(std::move(name)), log_(std::move(log)) {}

  void NoteEnd(int result);  // result: status of waitpid

  const pid_t pid_;
  const int output_;  // read end of the pipe
  const std::string name_, log_;
  std::string buffer_;
  bool ended_ = false;
  int exit_code_ = 0;
};

// The folder that contains the running program's executable.
absl::StatusOr<std::string> ProgramFolder();

}  // namespace cistern::app
