#include "worker/group/process_group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "test/worker/group/group_threads.h"
#include "worker/group/tcp_communicator.h"

namespace cistern::group {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string Words(uint32_t from, uint32_t to) {
  return std::string(1000 * from + 7 * to, static_cast<char>('a' + from)) + absl::StrCat(to);
}

TEST(ProcessGroup, ExchangeDeliversEveryMessage) {
  for (const uint32_t size : {1u, 2u, 4u}) {
    ExpectAllWell(RunGroup(size, [size](ProcessGroup& group) -> absl::Status {
      for (int round = 0; round < 3; ++round) {
        std::vector<std::string> to, expected;
        for (uint32_t r = 0; r < size; ++r) {
          to.push_back(Words(group.rank(), r));
          expected.push_back(Words(r, group.rank()));
        }
        CISTERN_ASSIGN_OR_RETURN(const std::vector<std::string> from, group.Exchange(to));
        EXPECT_EQ(from, expected);
      }
      return absl::OkStatus();
    }));
  }
}

TEST(ProcessGroup, FromLeaderAndGatherReturnTheSameToAll) {
  ExpectAllWell(RunGroup(3, [](ProcessGroup& group) -> absl::Status {
    CISTERN_ASSIGN_OR_RETURN(const std::string said,
                             group.FromLeader(absl::StrCat("I am ", group.rank())));
    EXPECT_EQ(said, "I am 0");
    CISTERN_ASSIGN_OR_RETURN(const std::vector<std::string> all,
                             group.Gather(absl::StrCat(group.rank())));
    EXPECT_THAT(all, ElementsAre("0", "1", "2"));
    CISTERN_ASSIGN_OR_RETURN(const uint64_t sum, SumOver(group, 10 + group.rank()));
    EXPECT_EQ(sum, 33u);
    return absl::OkStatus();
  }));
}

TEST(ProcessGroup, AgreeGivesAllTheErrorOfOneWithItsCodeAndName) {
  const auto ends = RunGroup(3, [](ProcessGroup& group) {
    return group.Agree(group.rank() == 1 ? absl::DataLossError("a.norm: record 7")
                                         : absl::OkStatus());
  });
  for (const absl::Status& end : ends) EXPECT_EQ(end.code(), absl::StatusCode::kDataLoss) << end;
  EXPECT_EQ(ends[0].message(), "worker 1: a.norm: record 7");
  EXPECT_EQ(ends[1].message(), "a.norm: record 7");
}

TEST(ProcessGroup, LeadRunsOnTheLeaderAndGivesAllItsError) {
  std::atomic<int> done = 0;
  ExpectAllWell(RunGroup(3, [&done](ProcessGroup& group) -> absl::Status {
    CISTERN_RETURN_IF_ERROR(group.Lead([&done] {
      ++done;
      return absl::OkStatus();
    }));
    EXPECT_EQ(done, 1);
    const absl::Status failed = group.Lead([] { return absl::ResourceExhaustedError("full"); });
    EXPECT_EQ(failed.code(), absl::StatusCode::kResourceExhausted) << failed;
    return absl::OkStatus();
  }));
}

TEST(ProcessGroup, AbortSendsItsReasonToWaitingWorkers) {
  const auto ends = RunGroup(3, [](ProcessGroup& group) -> absl::Status {
    CISTERN_RETURN_IF_ERROR(group.Agree(absl::OkStatus()));
    if (group.rank() == 2) {
      group.Abort(absl::InvalidArgumentError("a slot too many"));
      return group.Agree(absl::OkStatus());
    }
    return SumOver(group, 1).status();
  });
  for (const absl::Status& end : ends) {
    EXPECT_EQ(end.code(), absl::StatusCode::kInvalidArgument) << end;
    EXPECT_THAT(end.message(), HasSubstr("a slot too many"));
  }
  EXPECT_THAT(ends[0].message(), HasSubstr("worker 2"));
}

TEST(ProcessGroup, AWaitingThreadCanBeInterrupted) {
  const auto ends = RunGroup(2, [](ProcessGroup& group) -> absl::Status {
    if (group.rank() == 0) return group.Agree(absl::OkStatus());
    group.Interrupt(absl::UnavailableError("server 1 is gone"));
    return group.Agree(absl::OkStatus());
  });
  for (const absl::Status& end : ends) {
    EXPECT_EQ(end.code(), absl::StatusCode::kUnavailable) << end;
    EXPECT_THAT(end.message(), HasSubstr("server 1 is gone"));
  }
}

TEST(ProcessGroup, AnotherGroupHasItsOwnCalls) {
  ExpectAllWell(RunGroup(3, [](ProcessGroup& group) -> absl::Status {
    CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<ProcessGroup> other, group.Another());
    absl::Status beside;
    std::thread thread([&] {
      for (int i = 0; i < 50 && beside.ok(); ++i) beside = SumOver(*other, 1).status();
    });
    absl::Status here;
    for (int i = 0; i < 50 && here.ok(); ++i) here = group.Agree(absl::OkStatus());
    thread.join();
    CISTERN_RETURN_IF_ERROR(beside);
    return here;
  }));
}

TEST(ProcessGroup, AMissingWorkerIsNamed) {
  absl::StatusOr<Listener> free = Listener::Open(0, "127.0.0.1");
  ASSERT_TRUE(free.ok());
  const std::string address = absl::StrCat("127.0.0.1:", free->port());
  *free = Listener();
  const auto group = ProcessGroup::Form({0, 2, address, {4711}}, std::chrono::milliseconds(200));
  EXPECT_EQ(group.status().code(), absl::StatusCode::kDeadlineExceeded) << group.status();
  EXPECT_THAT(group.status().message(), HasSubstr("worker 1 did not join"));
}

// Worker 1 knows the secret but misbehaves: it announces a message of `length` bytes to worker 0,
// then sends `message`. Returns worker 0's status.
absl::Status LeaderOf(const std::function<absl::Status(ProcessGroup&)>& leader, uint64_t length,
                      const std::string& message) {
  absl::StatusOr<Listener> free = Listener::Open(0, "127.0.0.1");
  EXPECT_TRUE(free.ok());
  const std::string address = absl::StrCat("127.0.0.1:", free->port());
  *free = Listener();
  std::thread other([&] {
    GroupOptions group;
    group.rank = 1;
    group.size = 2;
    group.address = address;
    group.secret.value = 4711;
    const auto peers = ConnectOverTcp(std::move(group));
    ASSERT_TRUE(peers.ok()) << peers.status();
    Stream stream;
    const std::vector<uint64_t> sent = {length, 0};
    std::vector<uint64_t> received(2);
    const std::vector<size_t> each(2, sizeof(uint64_t));
    ASSERT_TRUE((*peers)->AllToAll(sent.data(), each, received.data(), each, stream).ok());
    std::string rest(received[0], ' ');
    (*peers)
        ->AllToAll(message.data(), {{message.size(), 0}}, rest.data(), {{rest.size(), 0}}, stream)
        .IgnoreError();
  });
  absl::Status end;
  {
    const auto group = ProcessGroup::Form({0, 2, address, {4711}}, std::chrono::seconds(60));
    EXPECT_TRUE(group.ok()) << group.status();
    end = leader(**group);
  }
  other.join();
  return end;
}

TEST(ProcessGroup, AMessageOfAnImpossibleLengthIsBlamedOnItsSender) {
  const auto exchange = [](ProcessGroup& group) { return group.Exchange({"", ""}).status(); };
  for (const uint64_t length :
       {ProcessGroup::kMaxMessageBytes + 1, uint64_t{1} << 62, ~uint64_t{0}}) {
    const absl::Status end = LeaderOf(exchange, length, "");
    EXPECT_EQ(end.code(), absl::StatusCode::kInternal) << end;
    EXPECT_THAT(end.message(),
                HasSubstr(absl::StrCat("worker 1 announces a message of ", length, " bytes")));
  }
}

TEST(ProcessGroup, AnInvalidErrorCodeIsBlamedOnItsSender) {
  const auto agree = [](ProcessGroup& group) { return group.Agree(absl::OkStatus()); };
  for (const std::string message : {"\x11why", "\x7fwhy", "\x80why", "\xffwhy"}) {
    const absl::Status end = LeaderOf(agree, message.size(), message);
    EXPECT_EQ(end.code(), absl::StatusCode::kInternal) << end;
    EXPECT_THAT(end.message(), HasSubstr("worker 1 sent an unknown error code"));
  }
  EXPECT_THAT(LeaderOf(agree, 0, "").message(), HasSubstr("worker 1 sent no status"));
  const std::string long_reason = "\x3" + std::string(1 << 20, 'x');
  EXPECT_LT(LeaderOf(agree, long_reason.size(), long_reason).message().size(), 5000u);
}

TEST(ProcessGroup, StepsOnTheCpuSumInRankOrder) {
  ExpectAllWell(RunGroup(3, [](ProcessGroup& group) -> absl::Status {
    DeviceContext device;
    CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<Communicator> steps, group.OnDevice(device));
    double x = group.rank() + 0.5;
    CISTERN_RETURN_IF_ERROR(steps->AllReduce(&x, 1, ElementType::kDouble, device.stream()));
    EXPECT_EQ(x, 4.5);
    return absl::OkStatus();
  }));
}

}  // namespace
}  // namespace cistern::group
