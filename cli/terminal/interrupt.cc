#include "cli/terminal/interrupt.h"

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <ctime>

namespace cistern::cli {
namespace {

// Ctrl-C reaches a launcher and what it has launched, and the launcher then sends SIGTERM: both are
// one stop. A second one takes a person, or a supervisor that has lost patience, longer than this.
constexpr int64_t kOneStopMs = 250;

// Globals, because a signal handler takes no argument of ours.
std::atomic<bool> interrupted{false};
std::atomic<int> first_signal{0};
std::atomic<int64_t> first_ms{0};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free &&
              std::atomic<int64_t>::is_always_lock_free);

int64_t NowMs() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<int64_t>(now.tv_sec) * 1000 + now.tv_nsec / 1'000'000;
}

extern "C" void OnSignal(int signal) {
  int none = 0;
  if (first_signal.compare_exchange_strong(none, signal)) {
    first_ms = NowMs();
    interrupted = true;
    return;
  }
  if (signal != first_signal && NowMs() - first_ms < kOneStopMs) return;
  std::signal(signal, SIG_DFL);
  std::raise(signal);  // ends the process once this handler returns
}

bool InstallHandlers() {
  struct sigaction action {};
  action.sa_handler = OnSignal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  return true;
}

}  // namespace

const std::atomic<bool>* CatchInterrupts() {
  [[maybe_unused]] static const bool installed = InstallHandlers();
  return &interrupted;
}

}  // namespace cistern::cli
