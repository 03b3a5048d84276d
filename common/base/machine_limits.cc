#include "common/base/machine_limits.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/const_init.h"
#include "absl/base/thread_annotations.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace cistern {

std::string SystemText(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return std::string(absl::StripAsciiWhitespace(text.str()));
}

namespace {

constexpr char kGroups[] = "sys/fs/cgroup";

// nullopt: no number, such as "max", or a file that does not exist.
std::optional<uint64_t> NumberIn(absl::string_view text) {
  uint64_t number = 0;
  if (!absl::SimpleAtoi(text, &number)) return std::nullopt;
  return number;
}

// The number in the line of a file that begins with `name` and a space or colon.
std::optional<uint64_t> LineIn(const std::string& path, absl::string_view name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    absl::string_view rest = line;
    if (!absl::ConsumePrefix(&rest, name) || rest.empty() || (rest[0] != ' ' && rest[0] != ':')) {
      continue;
    }
    const std::vector<absl::string_view> words =
        absl::StrSplit(rest.substr(1), absl::ByAnyChar(" \t"), absl::SkipEmpty());
    return words.empty() ? std::nullopt : NumberIn(words[0]);
  }
  return std::nullopt;
}

uint64_t AffinityCores() {
  // Larger sets than cpu_set_t, for machines with more than 1,024 processors.
  for (int bits = 1024; bits <= 1 << 20; bits *= 4) {
    cpu_set_t* const set = CPU_ALLOC(bits);
    if (set == nullptr) break;
    const size_t bytes = CPU_ALLOC_SIZE(bits);
    const bool is_read = sched_getaffinity(0, bytes, set) == 0;
    const int cores = is_read ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (cores > 0) return static_cast<uint64_t>(cores);
  }
  return std::max(1u, std::thread::hardware_concurrency());
}

// Adds the folders of `path` and of all groups above it to `folders`. In a container, /proc may
// name the group as the host does, while the mounted tree begins with the container's own group:
// groups that are not there have no files, so only what exists is read.
void AddGroups(const std::string& mount, absl::string_view path, std::set<std::string>* folders) {
  for (;;) {
    path = absl::StripSuffix(path, "/");
    folders->insert(absl::StrCat(mount, path));
    if (path.empty()) return;
    path = path.substr(0, path.rfind('/'));
  }
}

// The folders of this process's control groups. Files of a controller that a folder does not have
// are absent, so all folders are asked for all files.
std::set<std::string> GroupFolders(const std::string& root) {
  const std::string mount = absl::StrCat(root, kGroups);
  std::set<std::string> folders = {mount};
  // "4:memory:/docker/abc" (version 1), "0::/system.slice/x.service" (version 2)
  for (const absl::string_view line :
       absl::StrSplit(SystemText(root + "proc/self/cgroup"), '\n', absl::SkipEmpty())) {
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    const std::string& controllers = parts[1];
    AddGroups(controllers.empty() ? mount : absl::StrCat(mount, "/", controllers), parts[2],
              &folders);
    if (controllers.empty()) AddGroups(mount + "/unified", parts[2], &folders);
  }
  for (const char* controllers : {"memory", "cpu", "cpu,cpuacct", "pids"}) {
    folders.insert(absl::StrCat(mount, "/", controllers));
  }
  return folders;
}

// Processors of a quota: time in a period, both in microseconds. nullopt: no quota.
std::optional<uint64_t> CoresOf(absl::string_view quota, absl::string_view period) {
  const uint64_t time = NumberIn(quota).value_or(0), all = NumberIn(period).value_or(0);
  if (time == 0 || all == 0) return std::nullopt;
  return std::max<uint64_t>(1, time / all);
}

std::optional<uint64_t> QuotaOf(const std::string& folder) {
  const std::pair<std::string, std::string> share =
      absl::StrSplit(SystemText(folder + "/cpu.max"), absl::MaxSplits(' ', 1));
  if (!share.first.empty()) return CoresOf(share.first, share.second);
  // Version 1; -1 is none.
  return CoresOf(SystemText(folder + "/cpu.cfs_quota_us"),
                 SystemText(folder + "/cpu.cfs_period_us"));
}

struct GroupMemory {
  uint64_t limit = 0, used = 0;
};

std::optional<GroupMemory> MemoryOf(const std::string& folder) {
  std::optional<uint64_t> limit = NumberIn(SystemText(folder + "/memory.max"));
  // Above this the kernel takes memory back from the group and lets it crawl.
  const std::optional<uint64_t> high = NumberIn(SystemText(folder + "/memory.high"));
  if (high) limit = std::min(limit.value_or(*high), *high);
  std::optional<uint64_t> used = NumberIn(SystemText(folder + "/memory.current"));
  absl::string_view cache = "inactive_file";
  if (!limit) {
    limit = NumberIn(SystemText(folder + "/memory.limit_in_bytes"));
    used = NumberIn(SystemText(folder + "/memory.usage_in_bytes"));
    cache = "total_inactive_file";
  }
  if (!limit) return std::nullopt;
  const uint64_t all = used.value_or(0);
  // The kernel takes this from the page cache before it refuses memory.
  return GroupMemory{*limit,
                     all - std::min(all, LineIn(folder + "/memory.stat", cache).value_or(0))};
}

}  // namespace

MachineLimits ReadMachineLimits(const std::string& root) {
  MachineLimits limits;
  uint64_t cores = AffinityCores();
  const std::string meminfo = root + "proc/meminfo";
  const uint64_t pages =
      static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  limits.memory_bytes = LineIn(meminfo, "MemTotal").value_or(pages >> 10) << 10;
  limits.available_bytes =
      std::min(limits.memory_bytes,
               LineIn(meminfo, "MemAvailable").value_or(limits.memory_bytes >> 10) << 10);
  for (const std::string& folder : GroupFolders(root)) {
    if (const std::optional<uint64_t> quota = QuotaOf(folder); quota && *quota < cores) {
      cores = *quota;
      limits.cores_are_of_container = true;
    }
    if (const std::optional<GroupMemory> memory = MemoryOf(folder)) {
      if (memory->limit < limits.memory_bytes) {
        limits.memory_bytes = memory->limit;
        limits.memory_is_of_container = true;
      }
      limits.available_bytes =
          std::min(limits.available_bytes, memory->limit - std::min(memory->used, memory->limit));
    }
    limits.processes =
        std::min(limits.processes, NumberIn(SystemText(folder + "/pids.max")).value_or(kUnlimited));
  }
  limits.cores = static_cast<int>(cores);
  return limits;
}

namespace {

// Reading takes about a millisecond, for it opens a hundred files, and readers and pulls ask often.
constexpr absl::Duration kLimitsAge = absl::Seconds(1);

MachineLimits RecentLimits() {
  static absl::Mutex mutex(absl::kConstInit);
  static absl::Time read ABSL_GUARDED_BY(mutex) = absl::InfinitePast();
  static MachineLimits limits ABSL_GUARDED_BY(mutex);
  absl::MutexLock lock(&mutex);
  if (const absl::Time now = absl::Now(); absl::AbsDuration(now - read) >= kLimitsAge) {
    limits = ReadMachineLimits();
    read = now;
  }
  return limits;
}

}  // namespace

int CoreCount() {
  return RecentLimits().cores;
}

uint64_t MemoryBytes() {
  return RecentLimits().memory_bytes;
}

}  // namespace cistern
