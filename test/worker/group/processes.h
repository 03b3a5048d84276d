// Runs the ranks of a process group as real processes, for tests of communicators.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "common/base/check.h"
#include "cuda/collective/communicator.h"

namespace cistern::group {

// Memory that a test shares with its processes.
template <typename T>
class Shared {
 public:
  explicit Shared(size_t count) : count_(count) {
    void* memory =
        mmap(nullptr, Bytes(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CISTERN_CHECK(memory != MAP_FAILED);
    data_ = static_cast<T*>(memory);
  }
  ~Shared() { munmap(data_, Bytes()); }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;

  T* data() const { return data_; }
  T& operator[](size_t i) const { return data_[i]; }

 private:
  size_t Bytes() const { return (count_ + 1) * sizeof(T); }

  const size_t count_;
  T* data_;
};

// The end of a process: the status that it returned, or the signal that killed it.
struct Ending {
  int code = 0;  // absl::StatusCode
  char message[1024] = {};
  int signal = 0;

  bool ok() const { return code == 0 && signal == 0; }
  absl::StatusCode status() const { return static_cast<absl::StatusCode>(code); }
  std::string text() const { return message; }
};

using Body = std::function<absl::Status(GroupOptions group)>;

// Runs `body` in `size` processes, one per rank of a group, and returns how they ended.
// started < size: starts only the ranks below `started`. Ranks for which is_stopped returns true
// are killed once all others have ended.
inline std::vector<Ending> RunGroup(int size, std::chrono::milliseconds deadline, const Body& body,
                                    int started = -1,
                                    const std::function<bool(int)>& is_stopped = nullptr) {
  absl::StatusOr<Listener> listener = Listener::Open(0);
  CISTERN_CHECK(listener.ok());
  const int count = started < 0 ? size : started;
  const Shared<Ending> endings(static_cast<size_t>(size));
  std::vector<pid_t> processes;
  for (int rank = 0; rank < count; ++rank) {
    const pid_t process = fork();
    CISTERN_CHECK(process >= 0);
    if (process > 0) {
      processes.push_back(process);
      continue;
    }
    GroupOptions group;
    group.rank = rank;
    group.size = size;
    group.address = absl::StrCat("127.0.0.1:", listener->port());
    group.secret.value = 4711;
    group.gather_limit = group.deadline = deadline;
    if (rank == 0) group.listener = *std::move(listener);
    const absl::Status status = body(std::move(group));
    Ending& ending = endings[static_cast<size_t>(rank)];
    std::strncpy(ending.message, std::string(status.message()).c_str(), sizeof(ending.message) - 1);
    ending.code = static_cast<int>(status.code());
    _exit(0);
  }
  *listener = Listener();  // a port held open by the test would look like a waiting process
  const auto wait = [&](int rank) {
    int how = 0;
    waitpid(processes[static_cast<size_t>(rank)], &how, 0);
    if (WIFSIGNALED(how)) endings[static_cast<size_t>(rank)].signal = WTERMSIG(how);
  };
  for (int rank = 0; rank < count; ++rank) {
    if (is_stopped == nullptr || !is_stopped(rank)) wait(rank);
  }
  for (int rank = 0; rank < count; ++rank) {
    if (is_stopped == nullptr || !is_stopped(rank)) continue;
    kill(processes[static_cast<size_t>(rank)], SIGKILL);
    wait(rank);
  }
  return std::vector<Ending>(endings.data(), endings.data() + count);
}

inline void ExpectAllWell(const std::vector<Ending>& endings) {
  for (size_t r = 0; r < endings.size(); ++r) {
    EXPECT_EQ(endings[r].signal, 0) << "rank " << r;
    EXPECT_TRUE(endings[r].ok()) << "rank " << r << ": " << endings[r].message;
  }
}

}  // namespace cistern::group
