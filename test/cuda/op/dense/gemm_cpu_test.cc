#include "cuda/op/dense/gemm_cpu.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <vector>

namespace cistern::op {
namespace {

// What a signal handler may touch.
std::atomic<uintptr_t> stack_begin{0}, stack_end{0};
std::atomic<int> handled{0}, handled_elsewhere{0};

extern "C" void NoteItsStack(int) {
  // Not the address of a variable: the address sanitizer keeps those elsewhere.
  const auto at = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  handled.fetch_add(1);
  if (at < stack_begin.load() || at >= stack_end.load()) handled_elsewhere.fetch_add(1);
}

void KnowStackOfThisThread() {
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_getattr_np(pthread_self(), &attributes), 0);
  void* begin = nullptr;
  size_t bytes = 0;
  ASSERT_EQ(pthread_attr_getstack(&attributes, &begin, &bytes), 0);
  pthread_attr_destroy(&attributes);
  stack_begin = reinterpret_cast<uintptr_t>(begin);
  stack_end = reinterpret_cast<uintptr_t>(begin) + bytes;
}

// A handler's frame must never be written to memory that is not the stack, whichever instruction
// the signal interrupts. Sizes and transposes choose among the kernels of the library.
TEST(MultiplyMatrices, IsInterruptedOnItsOwnStackOnly) {
  constexpr size_t kSide = 96, kDepth = 640;
  constexpr int kWanted = 400, kMaxRounds = 20000;
  KnowStackOfThisThread();
  struct sigaction action = {}, before = {};
  action.sa_handler = NoteItsStack;
  action.sa_flags = SA_RESTART;
  ASSERT_EQ(sigaction(SIGUSR1, &action, &before), 0);

  // A timer of its own for this thread: signals for the process may go to other threads.
  sigevent event = {};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = SIGUSR1;
  event._sigev_un._tid = gettid();
  timer_t timer = nullptr;
  ASSERT_EQ(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
  constexpr timespec kEvery = {0, 37'000};
  const itimerspec times = {kEvery, kEvery};
  ASSERT_EQ(timer_settime(timer, 0, &times, nullptr), 0);

  std::vector<float> a(kSide * kDepth, 0.5f), b(kDepth * kSide, 0.25f), c(kSide * kSide);
  bool right = true;
  for (int round = 0; round < kMaxRounds && handled < kWanted; ++round) {
    const bool ta = round % 2 != 0, tb = round / 2 % 2 != 0;
    const size_t m = round % 3 == 0 ? kSide : kSide / 3;
    MultiplyMatrices({ta, tb, m, kSide, kDepth, a.data(), ta ? m : kDepth, b.data(),
                      tb ? kDepth : kSide, false, c.data(), kSide});
    right = right && c[(m - 1) * kSide] == kDepth * 0.125f;
  }
  timer_delete(timer);
  sigaction(SIGUSR1, &before, nullptr);

  EXPECT_TRUE(right);
  EXPECT_GE(handled, kWanted);
  EXPECT_EQ(handled_elsewhere, 0) << "of " << handled << " handlers";
}

}  // namespace
}  // namespace cistern::op
