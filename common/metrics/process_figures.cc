#include "common/metrics/process_figures.h"

#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace cistern {
namespace {

// Without the "." and "..", and without the descriptor that lists them.
uint64_t OpenFiles() {
  DIR* const folder = opendir("/proc/self/fd");
  if (folder == nullptr) return 0;
  uint64_t entries = 0;
  while (readdir(folder) != nullptr) ++entries;
  closedir(folder);
  return entries > 3 ? entries - 3 : 0;
}

// Seconds since 1970 at which the machine was started; 0: unknown.
double BootTime() {
  std::ifstream file("/proc/stat");
  for (std::string line; std::getline(file, line);) {
    double seconds = 0;
    if (std::sscanf(line.c_str(), "btime %lf", &seconds) == 1) return seconds;
  }
  return 0;
}

// Fields of /proc/self/stat after the name of the program, which may contain spaces: the first is
// field 3 of proc(5).
std::vector<std::string> StatFields() {
  std::ifstream file("/proc/self/stat");
  std::string line;
  std::getline(file, line);
  const size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return {};
  return absl::StrSplit(line.substr(name_end + 1), ' ', absl::SkipEmpty());
}

}  // namespace

ProcessFigures ReadProcessFigures() {
  constexpr size_t kUserTicks = 14, kSystemTicks = 15, kStartTicks = 22, kResidentPages = 24;
  ProcessFigures figures;
  const std::vector<std::string> fields = StatFields();
  const auto field = [&fields](size_t number) {
    double value = 0;
    const size_t index = number - 3;
    return index < fields.size() && absl::SimpleAtod(fields[index], &value) ? value : 0;
  };
  const double ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  figures.resident_bytes =
      static_cast<uint64_t>(field(kResidentPages)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  figures.cpu_seconds = (field(kUserTicks) + field(kSystemTicks)) / ticks;
  const double boot = BootTime();
  if (boot > 0) figures.start_time_seconds = boot + field(kStartTicks) / ticks;
  figures.open_files = OpenFiles();
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) figures.max_open_files = limit.rlim_cur;
  return figures;
}

void AddProcessFigures(MetricText* text) {
  const ProcessFigures figures = ReadProcessFigures();
  text->set_prefix("process_");
  text->Gauge("resident_memory_bytes", "Memory of the process in RAM.", figures.resident_bytes);
  text->Counter("cpu_seconds_total", "Processor time of all threads, user and system.",
                figures.cpu_seconds);
  text->Gauge("start_time_seconds", "Start of the process, as Unix time.",
              figures.start_time_seconds);
  text->Gauge("open_fds", "Open files and sockets.", figures.open_files);
  text->Gauge("max_fds", "The limit of open files and sockets.", figures.max_open_files);
}

}  // namespace cistern
