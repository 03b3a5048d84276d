#include "common/base/memory_exhausted.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <string>
#include <thread>

namespace cistern {
namespace {

void* volatile kept = nullptr;

[[noreturn]] void Refuse() {
  throw std::bad_alloc();
}

void Prepare() {
  ExplainMemoryExhaustion("cistern-server", "lower --staged_limit_mb");
}

TEST(ExplainMemoryExhaustion, ReportsTheLimitForAnUncaughtBadAlloc) {
  EXPECT_EXIT(
      {
        Prepare();
        const auto ask = []() noexcept { Refuse(); };
        ask();
      },
      testing::ExitedWithCode(1),
      "cistern-server: out of memory: an allocation failed; the process uses [0-9]+ MB.*"
      "or lower --staged_limit_mb");
}

TEST(ExplainMemoryExhaustion, ReportsALimitOfThreads) {
  const char* const expected = "cistern-server: no further thread can be started.*ulimit -u is 0";
  const auto limit_threads = [] {
    Prepare();
    ASSERT_EQ(setuid(61'234), 0);  // a limit does not bind root
    const rlimit none = {0, 0};
    ASSERT_EQ(setrlimit(RLIMIT_NPROC, &none), 0);
  };
  if (getuid() != 0) GTEST_SKIP() << "only root can become another user";
  EXPECT_EXIT(
      {
        limit_threads();
        const auto start = []() noexcept { std::thread([] {}).join(); };
        start();
      },
      testing::ExitedWithCode(1), expected);
  EXPECT_EXIT(
      {
        limit_threads();
        std::abort();  // as gRPC does
      },
      testing::ExitedWithCode(1), expected);
}

TEST(ExplainMemoryExhaustion, PrintsOtherUncaughtExceptions) {
  EXPECT_EXIT(
      {
        Prepare();
        const auto ask = []() noexcept { static_cast<void>(std::string().at(1)); };
        ask();
      },
      testing::KilledBySignal(SIGABRT), "cistern-server: uncaught exception: basic_string::at");
}

TEST(ExplainMemoryExhaustion, DoesNotChangeOtherFaults) {
  EXPECT_EXIT(
      {
        Prepare();
        std::abort();
      },
      testing::KilledBySignal(SIGABRT), "");
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // which have their own malloc
// As glibc does when it finds a damaged heap: it aborts while it holds malloc's lock. The handler
// must end the process and not wait for that lock.
TEST(ExplainMemoryExhaustion, EndsAProcessThatAbortsInsideMalloc) {
  EXPECT_EXIT(
      {
        Prepare();
        alarm(60);                              // ends a handler that waits
        std::thread([] { pause(); }).detach();  // malloc locks nothing in a process of one thread
        rlimit limit{};
        getrlimit(RLIMIT_AS, &limit);
        limit.rlim_cur = uint64_t{1} << 40;  // so that the handler looks how near it is
        setrlimit(RLIMIT_AS, &limit);
        char* volatile before = static_cast<char*>(std::calloc(1, 100'000));
        char* volatile block = static_cast<char*>(std::calloc(1, 100'000));
        char* volatile behind = static_cast<char*>(std::calloc(1, 100'000));
        // Blocks that fopen would allocate come from malloc's arena, not from this thread's cache.
        for (int i = 0; i < 64; ++i) kept = std::malloc(472);
        // malloc's two words: the block before is free, and has a size that it does not have.
        volatile size_t* const words = reinterpret_cast<size_t*>(block) - 2;
        words[0] = 64;
        words[1] = words[1] & ~size_t{1};
        std::free(block);
        std::free(before);
        std::free(behind);
      },
      testing::KilledBySignal(SIGABRT), "");
}
#endif

TEST(EndWithMessage, PrintsTheReason) {
  EXPECT_EXIT(
      {
        Prepare();
        EndWithMessage("tables were being changed");
      },
      testing::ExitedWithCode(1), "out of memory: tables were being changed");
}

}  // namespace
}  // namespace cistern
