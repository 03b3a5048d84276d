#include "common/base/memory_exhausted.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <new>
#include <system_error>

namespace cistern {
namespace {

const char* program_name = "cistern";
const char* program_fix = "make passes smaller";

// Everything below may run in a signal handler, at a moment when the thread holds malloc's lock: it
// uses system calls and arrays on the stack only, no stdio and no snprintf.

// Text of limited length; what does not fit is cut.
class Line {
 public:
  Line& operator<<(absl::string_view text) {
    for (const char c : text) {
      if (size_ < sizeof(text_)) text_[size_++] = c;
    }
    return *this;
  }
  Line& operator<<(uint64_t number) {
    char digits[20];
    size_t first = sizeof(digits);
    do {
      digits[--first] = static_cast<char>('0' + number % 10);
      number /= 10;
    } while (number > 0);
    return *this << absl::string_view(digits + first, sizeof(digits) - first);
  }
  void WriteTo(int file) const {
    if (write(file, text_, size_) < 0) return;
  }

 private:
  char text_[1200];
  size_t size_ = 0;
};

// Bytes of address space and of resident memory; 0 if /proc is unavailable.
struct ProcessMemory {
  uint64_t mapped = 0, resident = 0;
};
ProcessMemory MemoryOfProcess() {
  char text[256];
  const int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  const ssize_t bytes = read(file, text, sizeof(text));
  close(file);
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const char* at = text;
  const char* const end = text + std::max<ssize_t>(bytes, 0);
  const auto pages = [&at, end] {
    uint64_t number = 0;
    for (; at < end && *at >= '0' && *at <= '9'; ++at) {
      number = 10 * number + static_cast<uint64_t>(*at - '0');
    }
    while (at < end && *at == ' ') ++at;
    return number;
  };
  ProcessMemory memory;
  memory.mapped = pages() * page;
  memory.resident = pages() * page;
  return memory;
}

bool IsNearItsLimit() {
  constexpr uint64_t kNear = uint64_t{256} << 20;
  rlimit limit{};
  return getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
         MemoryOfProcess().mapped + kNear > limit.rlim_cur;
}

void Write(absl::string_view why) {
  const ProcessMemory memory = MemoryOfProcess();
  Line line;
  line << program_name << ": out of memory: " << why.substr(0, 600) << "; the process uses "
       << (memory.resident >> 20) << " MB (" << (memory.mapped >> 20) << " MB mapped) and has ";
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    line << "a limit of " << (limit.rlim_cur >> 20) << " MB (ulimit -v)";
  } else {
    line << "no memory limit";
  }
  line << "; give it more memory, or " << program_fix << ". Committed state is intact.\n";
  line.WriteTo(STDERR_FILENO);
}

// Whether the system starts no further process or thread for this user or container. A child that
// ends at once is the only test that may run here.
bool IsOutOfThreads() {
  const pid_t child = _Fork();
  if (child == 0) _exit(0);
  if (child < 0) return errno == EAGAIN;
  while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  return false;
}

void WriteOutOfThreads() {
  Line line;
  line << program_name << ": no further thread can be started: a limit of processes and threads is "
       << "reached (";
  rlimit limit{};
  if (getrlimit(RLIMIT_NPROC, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    line << "ulimit -u is " << limit.rlim_cur << "; ";
  }
  line << "a container has pids.max, a service of systemd TasksMax=); raise it, or use fewer "
       << "threads. Committed state is intact.\n";
  line.WriteTo(STDERR_FILENO);
}

// An exception that nobody expected: a fault of this program. The default handler prints it too.
void WriteException(const std::exception& error) {
  Line line;
  line << program_name << ": uncaught exception: " << error.what() << "\n";
  line.WriteTo(STDERR_FILENO);
}

void Terminate() {
  try {
    if (std::exception_ptr thrown = std::current_exception()) std::rethrow_exception(thrown);
  } catch (const std::bad_alloc&) {
    Write("an allocation failed");
    _exit(1);
  } catch (const std::system_error& error) {
    if (error.code() == std::errc::resource_unavailable_try_again) {
      WriteOutOfThreads();
      _exit(1);
    }
    WriteException(error);
  } catch (const std::exception& error) {
    WriteException(error);
  } catch (...) {
  }
  std::abort();
}

// gRPC and protobuf abort when malloc fails, or dereference the null pointer; gRPC and Abseil abort
// when a thread cannot be started.
void Abort(int signal) {
  const int error = errno;
  if (IsNearItsLimit()) {
    Write("an allocation in a library failed");
    _exit(1);
  }
  if (IsOutOfThreads()) {
    WriteOutOfThreads();
    _exit(1);
  }
  errno = error;
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
  Write(why);
  _exit(1);
}

}  // namespace cistern
