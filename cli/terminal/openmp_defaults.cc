#include "cli/terminal/openmp_defaults.h"

#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/thread_limit.h"

namespace cistern::cli {
namespace {

// Iterations of the library's waiting loop: measured, see docs/measurements/README.md.
constexpr char kSpins[] = "1000";

// A thread needs some for its thread-local data, and the libraries for matrix products for theirs.
constexpr uint64_t kMinStack = uint64_t{128} << 10, kMaxStack = uint64_t{1} << 30;

// The largest number in OMP_NUM_THREADS ("4", or "4,2" for loops inside of loops); numbers beyond
// 64 bits count as the largest. Words that are no number count as 0: the library reports and
// ignores them.
uint64_t MostThreads(absl::string_view text) {
  uint64_t most = 0;
  for (absl::string_view word : absl::StrSplit(text, ',')) {
    word = absl::StripAsciiWhitespace(word);
    uint64_t number = 0;
    if (!absl::SimpleAtoi(word, &number) && !word.empty() &&
        std::all_of(word.begin(), word.end(), absl::ascii_isdigit)) {
      number = UINT64_MAX;
    }
    most = std::max(most, number);
  }
  return most;
}

// Bytes of "64", "64K" (both KiB), "64B", "8M" or "1G". nullopt: the library reports and ignores
// it.
std::optional<uint64_t> StackBytes(absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  int shift = 10;
  if (!text.empty() && !absl::ascii_isdigit(text.back())) {
    const absl::string_view units = "bkmg";
    const size_t unit = units.find(absl::ascii_tolower(text.back()));
    if (unit == absl::string_view::npos) return std::nullopt;
    shift = static_cast<int>(unit) * 10;
    text = absl::StripAsciiWhitespace(text.substr(0, text.size() - 1));
  }
  uint64_t number = 0;
  if (!absl::SimpleAtoi(text, &number)) return std::nullopt;
  return number > UINT64_MAX >> shift ? UINT64_MAX : number << shift;
}

}  // namespace

std::vector<OpenMpSetting> OpenMpSettingsOf(const std::function<const char*(const char*)>& variable,
                                            const MachineLimits& limits) {
  std::vector<OpenMpSetting> settings;
  if (variable("OMP_WAIT_POLICY") == nullptr && variable("GOMP_SPINCOUNT") == nullptr) {
    settings.push_back({"GOMP_SPINCOUNT", kSpins, ""});
  }
  // Bounded, so that the program that is executed again accepts it.
  const std::string cores = absl::StrCat(std::min(limits.cores, kMaxThreads));
  const char* const threads = variable("OMP_NUM_THREADS");
  if (threads == nullptr && limits.cores_are_of_container) {
    settings.push_back({"OMP_NUM_THREADS", cores, ""});
  } else if (threads != nullptr && MostThreads(threads) > kMaxThreads) {
    settings.push_back({"OMP_NUM_THREADS", cores,
                        absl::StrCat("OMP_NUM_THREADS=", threads, " is more than ", kMaxThreads,
                                     " threads; one per core is used: ", cores)});
  }
  for (const char* name : {"OMP_STACKSIZE", "GOMP_STACKSIZE"}) {
    const char* const stack = variable(name);
    const std::optional<uint64_t> bytes = stack == nullptr ? std::nullopt : StackBytes(stack);
    if (!bytes || (*bytes >= kMinStack && *bytes <= kMaxStack)) continue;
    settings.push_back({name, "",
                        absl::StrCat(name, "=", stack,
                                     " is not between 128K and 1G; the system's default is used")});
  }
  return settings;
}

void SetOpenMpDefaults(char** argv) {
  const std::vector<OpenMpSetting> settings = OpenMpSettingsOf(getenv, ReadMachineLimits());
  if (settings.empty()) return;
  for (const OpenMpSetting& setting : settings) {
    const bool is_set = setting.value.empty()
                            ? unsetenv(setting.name.c_str()) == 0
                            : setenv(setting.name.c_str(), setting.value.c_str(), 1) == 0;
    if (!is_set) return;
    if (!setting.note.empty()) std::cerr << "note: " << setting.note << "\n";
  }
  // The path of the program rather than /proc/self/exe, which would rename the process to "exe".
  char path[PATH_MAX + 1] = "";
  if (readlink("/proc/self/exe", path, PATH_MAX) <= 0) return;
  execv(path, argv);  // returns only if it fails
}

}  // namespace cistern::cli
