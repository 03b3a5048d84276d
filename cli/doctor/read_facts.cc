#include "cli/doctor/read_facts.h"

#include <netdb.h>
#include <sys/resource.h>
#include <sys/timex.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <fstream>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/machine_limits.h"
#include "common/base/version.h"
#include "cuda/core/device.h"
#include "worker/data/format/parquet_reader.h"

namespace cistern::cli {
namespace {

uint64_t NumberOr(const std::string& text, uint64_t other) {
  uint64_t number = 0;
  return absl::SimpleAtoi(text, &number) ? number : other;
}

// The value of a line "name : value" or "name: value kB" of /proc; empty if there is none.
std::string LineOf(const std::string& path, absl::string_view name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(':', 1));
    if (parts.size() == 2 && absl::StripAsciiWhitespace(parts[0]) == name) {
      return std::string(absl::StripAsciiWhitespace(parts[1]));
    }
  }
  return "";
}

void ReadProcessor(const MachineLimits& limits, MachineFacts* facts) {
  facts->cores = static_cast<uint64_t>(limits.cores);
  facts->processor = LineOf("/proc/cpuinfo", "model name");
  double load[1];
  if (getloadavg(load, 1) == 1) facts->load = load[0];
#ifdef __x86_64__
  const std::string flags = absl::StrCat(" ", LineOf("/proc/cpuinfo", "flags"), " ");
  std::vector<std::string> missing;
  for (const char* one : {"avx2", "fma", "bmi2", "f16c"}) {
    if (flags.size() > 2 && !absl::StrContains(flags, absl::StrCat(" ", one, " ")))
      missing.push_back(one);
  }
  facts->missing_instructions = absl::StrJoin(missing, " ");
#endif
}

void ReadMemory(const MachineLimits& limits, MachineFacts* facts) {
  facts->memory_bytes = limits.memory_bytes;
  facts->available_bytes = limits.available_bytes;
  facts->overcommit = NumberOr(SystemText("/proc/sys/vm/overcommit_memory"), 0);
  // "always [madvise] never"
  const std::string modes = SystemText("/sys/kernel/mm/transparent_hugepage/enabled");
  const size_t open = modes.find('['), close = modes.find(']');
  if (open != std::string::npos && close != std::string::npos && open < close) {
    facts->huge_pages = modes.substr(open + 1, close - open - 1);
  }
}

uint64_t Limit(int resource) {
  rlimit limit{};
  if (getrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0 ||
      limit.rlim_max == RLIM_INFINITY)
    return kNoLimit;
  return limit.rlim_max;
}

uint64_t SoftLimit(int resource) {
  rlimit limit{};
  if (getrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0 ||
      limit.rlim_cur == RLIM_INFINITY)
    return kNoLimit;
  return limit.rlim_cur;
}

void ReadLimits(const MachineLimits& limits, MachineFacts* facts) {
  facts->open_files = Limit(RLIMIT_NOFILE);  // servers raise the soft limit to the hard one
  facts->processes = std::min(SoftLimit(RLIMIT_NPROC), limits.processes);
  facts->file_bytes = SoftLimit(RLIMIT_FSIZE);
  facts->address_bytes = SoftLimit(RLIMIT_AS);
}

void ReadClock(MachineFacts* facts) {
  facts->unix_seconds = static_cast<double>(std::time(nullptr));
  timex state{};
  const int answer = adjtimex(&state);
  facts->clock_synchronized = answer >= 0 && (state.status & STA_UNSYNC) == 0;
  const std::string source =
      SystemText("/sys/devices/system/clocksource/clocksource0/current_clocksource");
  if (!source.empty()) facts->clock_source = source;
}

void ReadGpus(MachineFacts* facts) {
  facts->cuda_build = DescribeCudaBuild();
  facts->has_gpu_driver = !SystemText("/proc/driver/nvidia/version").empty();
  const DeviceQuery query = QueryGpus();
  facts->is_built_for_gpus = query.runtime_version > 0;
  facts->no_gpu = query.reason;
  for (const GpuInfo& gpu : query.gpus) {
    const absl::Status status = CheckGpu(gpu).ok() ? TestGpu(gpu.index) : CheckGpu(gpu);
    facts->gpus.push_back({gpu.name, gpu.memory_bytes, std::string(status.message())});
  }
}

bool ResolvesToThisMachine(const char* name) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (getaddrinfo(name, nullptr, &hints, &found) != 0) return false;
  freeaddrinfo(found);
  return true;
}

void ReadNetwork(MachineFacts* facts) {
  facts->has_localhost = ResolvesToThisMachine("localhost");
  const std::vector<std::string> range =
      absl::StrSplit(SystemText("/proc/sys/net/ipv4/ip_local_port_range"), absl::ByAnyChar(" \t"),
                     absl::SkipEmpty());
  if (range.size() != 2) return;
  facts->first_client_port = NumberOr(range[0], facts->first_client_port);
  facts->last_client_port = NumberOr(range[1], facts->last_client_port);
}

}  // namespace

MachineFacts ReadMachine() {
  MachineFacts facts;
  facts.version = kVersion;
  facts.parquet = data::ParquetLibrary();
  utsname system{};
  if (uname(&system) == 0) facts.kernel = system.release;
  const MachineLimits limits = ReadMachineLimits();
  ReadProcessor(limits, &facts);
  ReadMemory(limits, &facts);
  ReadLimits(limits, &facts);
  ReadClock(&facts);
  ReadGpus(&facts);
  ReadNetwork(&facts);
  return facts;
}

}  // namespace cistern::cli
