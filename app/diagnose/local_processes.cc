#include "app/diagnose/local_processes.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "app/fleet/process.h"

namespace cistern::app {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxFileBytes = 1 << 20;
constexpr size_t kMaxThreads = 2000;
constexpr size_t kMaxStackBytes = 4 << 20;

// A file of /proc, whose size is not known before; "" if it cannot be read.
std::string ReadProc(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kMaxFileBytes, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(std::max<std::streamsize>(0, file.gcount())));
  return text;
}

// The numbers that are names in a folder of /proc, in order.
std::vector<pid_t> NumbersIn(const fs::path& folder) {
  std::vector<pid_t> numbers;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    pid_t number = 0;
    if (absl::SimpleAtoi(entry->path().filename().string(), &number)) numbers.push_back(number);
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

std::string NameOf(const fs::path& folder) {
  std::string name = ReadProc(folder / "comm");
  while (!name.empty() && name.back() == '\n') name.pop_back();
  return name;
}

// "R 12.3 s": state and processor time of a thread, from its stat file.
std::string ThreadState(const std::string& stat) {
  const size_t name_end = stat.rfind(')');  // the name may hold blanks
  if (name_end == std::string::npos) return "";
  const std::vector<absl::string_view> fields =
      absl::StrSplit(absl::string_view(stat).substr(name_end + 1), ' ', absl::SkipEmpty());
  uint64_t user = 0, system = 0;
  if (fields.size() < 13 || !absl::SimpleAtoi(fields[11], &user) ||
      !absl::SimpleAtoi(fields[12], &system)) {
    return "";
  }
  const double ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  return absl::StrFormat("%s %9.2f s", std::string(fields[0]),
                         static_cast<double>(user + system) / ticks);
}

std::string Threads(pid_t pid) {
  const fs::path folder = absl::StrCat("/proc/", pid, "/task");
  std::string text = "\nthread   state, time  name, and where it waits\n";
  const std::vector<pid_t> threads = NumbersIn(folder);
  for (size_t i = 0; i < std::min(threads.size(), kMaxThreads); ++i) {
    const fs::path thread = folder / std::to_string(threads[i]);
    const std::string where = ReadProc(thread / "wchan");
    absl::StrAppendFormat(&text, "%-8d %-12s  %-16s %s\n", threads[i],
                          ThreadState(ReadProc(thread / "stat")), NameOf(thread),
                          where == "0" ? "" : where);
  }
  return text;
}

// The program `name` in PATH; "" if it is not there.
std::string FindProgram(const std::string& name) {
  const char* const path = std::getenv("PATH");
  if (path == nullptr) return "";
  for (const absl::string_view folder : absl::StrSplit(path, ':', absl::SkipEmpty())) {
    std::string program = absl::StrCat(folder, "/", name);
    if (access(program.c_str(), X_OK) == 0) return program;
  }
  return "";
}

}  // namespace

std::vector<LocalProcess> LocalProcesses() {
  constexpr std::array<absl::string_view, 3> kNames = {"cistern", "cistern-server",
                                                       "cistern-worker"};
  std::vector<LocalProcess> found;
  for (const pid_t pid : NumbersIn("/proc")) {
    const std::string name = NameOf(absl::StrCat("/proc/", pid));
    if (pid == getpid() || std::find(kNames.begin(), kNames.end(), name) == kNames.end()) continue;
    found.push_back({pid, name});
  }
  return found;
}

absl::StatusOr<std::string> DescribeProcess(pid_t pid) {
  const fs::path folder = absl::StrCat("/proc/", pid);
  const std::string status = ReadProc(folder / "status");
  if (status.empty()) return absl::NotFoundError(absl::StrCat("process ", pid, " has ended"));
  std::vector<std::string> words = absl::StrSplit(ReadProc(folder / "cmdline"), '\0');
  return absl::StrCat(absl::StrJoin(words, " "), "\n\n", status, "\n", ReadProc(folder / "limits"),
                      "\n", ReadProc(folder / "io"), Threads(pid));
}

absl::StatusOr<std::string> StacksOf(pid_t pid, const std::string& scratch) {
  const std::string gdb = FindProgram("gdb");
  if (gdb.empty()) {
    return WithFix(absl::FailedPreconditionError("gdb is not installed"),
                   "apt-get install gdb, and repeat the command");
  }
  const std::string log = scratch + "/gdb.log";
  CISTERN_ASSIGN_OR_RETURN(
      const std::unique_ptr<ChildProcess> child,
      ChildProcess::Start(
          {gdb, "-batch", "-nx", "-iex", "set auto-load off", "-iex", "set debuginfod enabled off",
           "-p", absl::StrCat(pid), "-ex", "thread apply all backtrace 64"},
          log));
  const absl::Time end = absl::Now() + absl::Seconds(30);
  std::string stacks;
  while (stacks.size() < kMaxStackBytes) {
    const absl::StatusOr<std::string> line = child->ReadLine(end - absl::Now());
    if (!line.ok()) break;  // the end of its output, or of our patience
    absl::StrAppend(&stacks, *line, "\n");
  }
  child->Stop(absl::Seconds(2));
  if (absl::StrContains(stacks, "#0")) return stacks;
  std::error_code ignored;
  const std::string why = ReadProc(log);
  const bool refused = absl::StrContains(why, "not permitted");
  return WithFix(
      absl::FailedPreconditionError(absl::StrCat("gdb shows no stack of process ", pid, ": ",
                                                 why.empty() ? "no message" : why)),
      refused ? "repeat the command as root, or as the user of the process after sudo sysctl "
                "kernel.yama.ptrace_scope=0"
              : "");
}

}  // namespace cistern::app
