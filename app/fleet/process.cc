#include "app/fleet/process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "absl/time/clock.h"

namespace cistern::app {
namespace {

absl::Status SystemError(const std::string& what) {
  return absl::InternalError(absl::StrCat(what, ": ", std::strerror(errno)));
}

// Runs in the child after fork; only async-signal-safe calls are allowed here.
[[noreturn]] void Become(char* const* argv, int output, int log, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(127);  // the parent died before prctl
  setpgid(0, 0);
  struct sigaction usual {};
  usual.sa_handler = SIG_DFL;
  sigaction(SIGINT, &usual, nullptr);
  sigaction(SIGTERM, &usual, nullptr);
  dup2(output, STDOUT_FILENO);
  dup2(log, STDERR_FILENO);
  execv(argv[0], argv);
  _exit(127);
}

}  // namespace

absl::StatusOr<std::unique_ptr<ChildProcess>> ChildProcess::Start(
    const std::vector<std::string>& argv, const std::string& log) {
  if (access(argv[0].c_str(), X_OK) != 0) return SystemError(argv[0]);
  std::vector<char*> words;
  for (const std::string& word : argv) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  const int log_file = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (log_file < 0) return SystemError(log);
  int pipe_ends[2];
  if (pipe2(pipe_ends, O_CLOEXEC) != 0) {
    close(log_file);
    return SystemError("pipe");
  }
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0) Become(words.data(), pipe_ends[1], log_file, parent);
  const absl::Status started = pid < 0 ? SystemError("fork") : absl::OkStatus();
  close(pipe_ends[1]);
  close(log_file);
  if (!started.ok()) {
    close(pipe_ends[0]);
    return started;
  }
  const std::string name = std::filesystem::path(argv[0]).filename();
  return std::unique_ptr<ChildProcess>(new ChildProcess(pid, pipe_ends[0], name, log));
}

ChildProcess::~ChildProcess() {
  Stop(absl::Seconds(5));
  close(output_);
}

absl::StatusOr<std::string> ChildProcess::ReadLine(absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  while (true) {
    const size_t end = buffer_.find('\n');
    if (end != std::string::npos) {
      std::string line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      return line;
    }
    pollfd waiting{output_, POLLIN, 0};
    const auto left = absl::ToInt64Milliseconds(deadline - absl::Now());
    if (left <= 0) {
      return absl::DeadlineExceededError(
          absl::StrCat(name_, ": printed no line within ", absl::FormatDuration(timeout)));
    }
    if (poll(&waiting, 1, static_cast<int>(left)) <= 0) continue;
    char bytes[512];
    const ssize_t count = read(output_, bytes, sizeof(bytes));
    if (count == 0) return absl::InternalError(absl::StrCat(name_, " ended: ", LogEnd()));
    if (count > 0) buffer_.append(bytes, count);
  }
}

bool ChildProcess::Running() {
  int result = 0;
  if (ended_ || waitpid(pid_, &result, WNOHANG) != pid_) return !ended_;
  NoteEnd(result);
  return false;
}

void ChildProcess::NoteEnd(int result) {
  ended_ = true;
  exit_code_ = WIFEXITED(result) ? WEXITSTATUS(result) : 128 + WTERMSIG(result);
}

std::string ChildProcess::LogEnd() const {
  std::ifstream file(log_, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  constexpr size_t kShown = 2000;
  return text.size() > kShown ? text.substr(text.size() - kShown) : text;
}

void ChildProcess::Signal(int signal) {
  if (Running()) kill(pid_, signal);
}

void ChildProcess::Stop(absl::Duration patience) {
  Signal(SIGTERM);
  const absl::Time deadline = absl::Now() + patience;
  while (Running() && absl::Now() < deadline) absl::SleepFor(absl::Milliseconds(5));
  if (!Running()) return;
  kill(pid_, SIGKILL);
  int result = 0;
  waitpid(pid_, &result, 0);
  NoteEnd(result);
}

absl::StatusOr<std::string> ProgramFolder() {
  std::error_code error;
  const std::filesystem::path file = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return absl::InternalError(absl::StrCat("/proc/self/exe: ", error.message()));
  return file.parent_path().string();
}

}  // namespace cistern::app
