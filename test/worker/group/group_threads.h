// Runs the workers of a process group as threads of the test.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <thread>
#include <vector>

#include "worker/group/process_group.h"

namespace cistern::group {

// Runs `work` on each of `size` workers, and returns their final statuses.
inline std::vector<absl::Status> RunGroup(uint32_t size,
                                          const std::function<absl::Status(ProcessGroup&)>& work) {
  std::string address;
  {
    const absl::StatusOr<Listener> free = Listener::Open(0, "127.0.0.1");
    EXPECT_TRUE(free.ok()) << free.status();
    address = absl::StrCat("127.0.0.1:", free->port());
  }
  std::vector<absl::Status> ends(size);
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      auto group = ProcessGroup::Form({rank, size, address, {4711}}, std::chrono::seconds(60));
      ends[rank] = group.ok() ? work(**group) : group.status();
    });
  }
  for (std::thread& thread : threads) thread.join();
  return ends;
}

inline void ExpectAllWell(const std::vector<absl::Status>& ends) {
  for (size_t r = 0; r < ends.size(); ++r) EXPECT_TRUE(ends[r].ok()) << r << ": " << ends[r];
}

}  // namespace cistern::group
