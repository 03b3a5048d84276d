#include "cli/terminal/openmp_defaults.h"

#include <limits.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/machine_limits.h"

namespace cistern {
namespace {

// Iterations of the library's waiting loop: measured, see docs/measurements/README.md.
constexpr char kSpins[] = "1000";

}  // namespace

void SetOpenMpDefaults(char** argv) {
  bool is_set = false;
  const auto set = [&is_set](const char* name, const std::string& value) {
    is_set |= setenv(name, value.c_str(), /*overwrite=*/0) == 0;
  };
  if (getenv("OMP_WAIT_POLICY") == nullptr && getenv("GOMP_SPINCOUNT") == nullptr) {
    set("GOMP_SPINCOUNT", kSpins);
  }
  const MachineLimits limits = ReadMachineLimits();
  if (limits.cores_are_of_container && getenv("OMP_NUM_THREADS") == nullptr) {
    set("OMP_NUM_THREADS", absl::StrCat(limits.cores));
  }
  if (!is_set) return;
  // The path of the program rather than /proc/self/exe, which would rename the process to "exe".
  char path[PATH_MAX + 1] = "";
  if (readlink("/proc/self/exe", path, PATH_MAX) <= 0) return;
  execv(path, argv);  // returns only if it fails
}

}  // namespace cistern
