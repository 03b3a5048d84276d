#include "common/base/memory_exhausted.h"

#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>

namespace cistern {
namespace {

const char* program_name = "cistern";
const char* program_fix = "make passes smaller";

// Nothing below this line allocates.

// Bytes of address space and of resident memory; 0 if /proc is unavailable.
void MemoryOfProcess(unsigned long* mapped, unsigned long* resident) {
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr) return;
  char buffer[256];
  std::setvbuf(file, buffer, _IOFBF, sizeof(buffer));
  const auto page = static_cast<unsigned long>(sysconf(_SC_PAGESIZE));
  if (std::fscanf(file, "%lu %lu", mapped, resident) == 2) {
    *mapped *= page;
    *resident *= page;
  }
  std::fclose(file);
}

bool IsNearItsLimit() {
  constexpr unsigned long kNear = 256ul << 20;
  rlimit limit{};
  unsigned long mapped = 0, resident = 0;
  MemoryOfProcess(&mapped, &resident);
  return getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
         mapped + kNear > limit.rlim_cur;
}

void Write(const char* why, size_t why_bytes) {
  unsigned long mapped = 0, resident = 0;
  MemoryOfProcess(&mapped, &resident);
  rlimit limit{};
  char cap[64] = "no memory limit";
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    std::snprintf(cap, sizeof(cap), "a limit of %lu MB (ulimit -v)",
                  static_cast<unsigned long>(limit.rlim_cur >> 20));
  }
  char text[1200];
  const int bytes = std::snprintf(
      text, sizeof(text),
      "%s: out of memory: %.*s; the process uses %lu MB (%lu MB mapped) and has %s; give it more "
      "memory, or %s. Committed state is intact.\n",
      program_name, static_cast<int>(why_bytes < 600 ? why_bytes : 600), why, resident >> 20,
      mapped >> 20, cap, program_fix);
  if (bytes > 0 && write(STDERR_FILENO, text, static_cast<size_t>(bytes)) < 0) return;
}

void Terminate() {
  try {
    if (std::exception_ptr thrown = std::current_exception()) std::rethrow_exception(thrown);
  } catch (const std::bad_alloc&) {
    constexpr char kWhy[] = "an allocation failed";
    Write(kWhy, sizeof(kWhy) - 1);
    _exit(1);
  } catch (...) {
  }
  std::abort();
}

// gRPC and protobuf abort when malloc fails, or dereference the null pointer.
void Abort(int signal) {
  if (IsNearItsLimit()) {
    constexpr char kWhy[] = "an allocation in a library failed";
    Write(kWhy, sizeof(kWhy) - 1);
    _exit(1);
  }
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

}  // namespace

void ExplainMemoryExhaustion(const char* program, const char* fix) {
  program_name = program;
  program_fix = fix;
  std::set_terminate(Terminate);
  for (const int signal : {SIGABRT, SIGSEGV}) {
    // A sanitizer has already installed its own handler.
    struct sigaction before = {};
    if (sigaction(signal, nullptr, &before) != 0 || before.sa_handler != SIG_DFL) continue;
    std::signal(signal, Abort);
  }
}

void EndWithMessage(absl::string_view why) {
  Write(why.data(), why.size());
  _exit(1);
}

}  // namespace cistern
