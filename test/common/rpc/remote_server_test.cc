#include "common/rpc/remote_server.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>

#include "absl/synchronization/mutex.h"
#include "common/base/thread_pool.h"

namespace cistern {
namespace {

// Two threads wait for the same mutex. Returns whether that sets errno to ENOENT in one of them.
bool WaitsSetErrno() {
  absl::Mutex mutex;
  int waiting = 0;
  bool end = false, set = false;
  {
    ThreadPool threads(2);
    for (int i = 0; i < 2; ++i) {
      threads.Run([&] {
        absl::MutexLock lock(&mutex);
        ++waiting;
        errno = EINPROGRESS;
        mutex.Await(absl::Condition(&end));
        set |= errno == ENOENT;
      });
    }
    const auto both_wait = [&] { return waiting == 2; };
    absl::MutexLock lock(&mutex, absl::Condition(&both_wait));
    end = true;
  }
  return set;
}

// In a process of its own: only the first such wait of a process measures the clock.
TEST(RemoteServerDeathTest, WaitsForAMutexDoNotChangeTheErrnoOfConnect) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        RemoteServer::Create("127.0.0.1:1", {});
        std::_Exit(WaitsSetErrno());
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace cistern
