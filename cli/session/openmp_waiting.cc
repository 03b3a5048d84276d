#include "cli/session/openmp_waiting.h"

#include <limits.h>
#include <unistd.h>

#include <cstdlib>

namespace cistern {
namespace {

// Iterations of the library's waiting loop: measured, see docs/measurements/README.md.
constexpr char kSpins[] = "1000";

}  // namespace

void SetOpenMpWaiting(char** argv) {
  if (getenv("OMP_WAIT_POLICY") != nullptr || getenv("GOMP_SPINCOUNT") != nullptr) return;
  if (setenv("GOMP_SPINCOUNT", kSpins, /*overwrite=*/0) != 0) return;
  // The path of the program rather than /proc/self/exe, which would rename the process to "exe".
  char path[PATH_MAX + 1] = "";
  if (readlink("/proc/self/exe", path, PATH_MAX) <= 0) return;
  execv(path, argv);  // returns only if it fails
}

}  // namespace cistern
