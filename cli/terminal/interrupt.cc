#include "cli/terminal/interrupt.h"

#include <csignal>

namespace cistern {
namespace {

// A global, because a signal handler takes no argument of ours.
std::atomic<bool> interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free);

extern "C" void OnSignal(int) {
  interrupted.store(true);
}

}  // namespace

const std::atomic<bool>* CatchInterrupts() {
  struct sigaction action {};
  action.sa_handler = OnSignal;
  action.sa_flags = SA_RESETHAND | SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  return &interrupted;
}

}  // namespace cistern
