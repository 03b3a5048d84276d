#include "cli/terminal/interrupt.h"

#include <algorithm>
#include <csignal>

#include "absl/time/clock.h"

namespace cistern {
namespace {

// A global, because a signal handler takes no argument of ours.
std::atomic<bool> interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free);

extern "C" void OnSignal(int) {
  interrupted.store(true);
}

bool InstallHandlers() {
  struct sigaction action {};
  action.sa_handler = OnSignal;
  action.sa_flags = SA_RESETHAND | SA_RESTART;
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

void SleepUnless(const std::atomic<bool>& stop, absl::Duration most) {
  constexpr absl::Duration kPiece = absl::Milliseconds(50);
  const absl::Time end = absl::Now() + most;
  while (!stop && absl::Now() < end) absl::SleepFor(std::min(end - absl::Now(), kPiece));
}

}  // namespace cistern
