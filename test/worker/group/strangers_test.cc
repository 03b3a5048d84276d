// Process groups that form while strangers connect to the port of rank 0.
#include <gmock/gmock.h>

#include <atomic>
#include <functional>
#include <thread>

#include "test/worker/group/strangers.h"
#include "worker/group/tcp_communicator.h"

namespace cistern::group {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

constexpr uint64_t kSecret = 0x5ec2e7;
constexpr milliseconds kLong{60000};

// A group of two or three ranks whose port is open before any rank joins.
class StrangersTest : public testing::Test {
 protected:
  void SetUp() override {
    absl::StatusOr<Listener> listener = Listener::Open(0, "127.0.0.1");
    ASSERT_TRUE(listener.ok()) << listener.status();
    listener_ = *std::move(listener);
    port_ = listener_.port();
  }
  GroupOptions Group(int rank, int size, milliseconds limit = kLong) {
    GroupOptions group;
    group.rank = rank;
    group.size = size;
    group.address = absl::StrCat("127.0.0.1:", port_);
    group.secret.value = kSecret;
    group.gather_limit = group.deadline = limit;
    if (rank == 0) group.listener = std::move(listener_);
    return group;
  }
  // Runs the ranks: each joins and takes part in a sum. Returns their final statuses.
  std::vector<absl::Status> Run(std::vector<GroupOptions> groups) {
    std::vector<absl::Status> ends(groups.size());
    std::vector<std::thread> threads;
    for (size_t i = 0; i < groups.size(); ++i) {
      threads.emplace_back([&, i] { ends[i] = Sum(std::move(groups[i])); });
    }
    for (std::thread& thread : threads) thread.join();
    return ends;
  }
  std::vector<absl::Status> Run(int size) {
    std::vector<GroupOptions> groups;
    for (int rank = 0; rank < size; ++rank) groups.push_back(Group(rank, size));
    return Run(std::move(groups));
  }
  static absl::Status Sum(GroupOptions group) {
    const int size = group.size;
    CISTERN_ASSIGN_OR_RETURN(auto peers, ConnectOverTcp(std::move(group)));
    Stream stream;
    double x = 1;
    CISTERN_RETURN_IF_ERROR(peers->AllReduce(&x, 1, ElementType::kDouble, stream));
    return x == size ? absl::OkStatus() : absl::InternalError(absl::StrCat("sum ", x));
  }
  void ExpectGathers(int size) {
    for (const absl::Status& end : Run(size)) EXPECT_TRUE(end.ok()) << end;
  }
  Socket Stranger(const std::string& bytes) { return StrangerAt(port_, bytes); }

  Listener listener_;
  uint16_t port_ = 0;
};

// Hellos that would end the group, or take the place of rank 1, if they had the secret.
TEST_F(StrangersTest, HellosWithoutTheSecretChangeNothing) {
  const std::vector<Hello> hellos = {
      {kSecret + 1, 1, 2, 9}, {kSecret - 1, 0, 2, 9},  {0, 1, 2, 9}, {1, ~0u, ~0u, 9},
      {~kSecret, 1, 3, 9},    {kSecret << 1, 2, 2, 9}, {2, 1, 0, 9}, {3, 1u << 31, 2, 9},
  };
  std::vector<Socket> strangers;
  for (const Hello& hello : hellos) strangers.push_back(Stranger(FormatHello(hello)));
  strangers.push_back(Stranger(std::string("CISTPEER\1\0\0\0\7\0\0\0", 16) + std::string(68, 't')));
  ExpectGathers(2);
}

TEST_F(StrangersTest, SilentConnectionsCostNothing) {
  std::vector<Socket> strangers;
  for (int i = 0; i < 100; ++i) strangers.push_back(Stranger(i % 2 == 0 ? "" : "CIST"));
  ExpectGathers(3);
}

TEST_F(StrangersTest, ALeaderVisitedOnlyByAStrangerNamesTheMissingWorker) {
  const Socket stranger = Stranger(FormatHello({kSecret + 1, 1, 2, 9}));
  std::vector<GroupOptions> leader;
  leader.push_back(Group(0, 2, milliseconds(300)));
  const absl::Status end = Run(std::move(leader))[0];
  EXPECT_EQ(end.code(), absl::StatusCode::kDeadlineExceeded) << end;
  EXPECT_THAT(end.message(), HasSubstr("worker 1 did not join"));
}

TEST_F(StrangersTest, AProcessWhoseConnectionIsDeadIsReplaced) {
  { const Socket killed = Stranger(FormatHello({kSecret, 1, 2, 9})); }
  ExpectGathers(2);
}

TEST_F(StrangersTest, TwoLiveProcessesWithOneRankFailTheGroup) {
  const Socket other = Stranger(FormatHello({kSecret, 1, 3, 9}));
  std::vector<GroupOptions> groups;
  groups.push_back(Group(0, 3));
  groups.push_back(Group(1, 3));
  for (const absl::Status& end : Run(std::move(groups))) {
    EXPECT_EQ(end.code(), absl::StatusCode::kInvalidArgument) << end;
    EXPECT_THAT(end.message(), HasSubstr("two processes were started as worker 1"));
  }
}

TEST_F(StrangersTest, AnInvalidRankWithTheSecretFailsTheGroup) {
  const Socket other = Stranger(FormatHello({kSecret, ~0u, 2, 9}));
  std::vector<GroupOptions> leader;
  leader.push_back(Group(0, 2));
  const absl::Status end = Run(std::move(leader))[0];
  EXPECT_EQ(end.code(), absl::StatusCode::kInvalidArgument) << end;
  EXPECT_THAT(end.message(), HasSubstr("unexpected connection from worker 4294967295"));
}

// Rank 0 has a new secret, as after a restart: the other rank fetches until it gets that secret.
TEST_F(StrangersTest, AnOutdatedSecretIsFetchedAgain) {
  std::atomic<uint64_t> left = kSecret - 1;
  std::atomic<int> asked = 0;
  std::vector<GroupOptions> groups;
  groups.push_back(Group(0, 2));
  groups.push_back(Group(1, 2));
  groups[0].secret.leave = [](uint64_t) { return absl::UnavailableError("server 0 is down"); };
  groups[1].secret = {0, nullptr, [&]() -> absl::StatusOr<uint64_t> {
                        if (++asked == 1) return absl::UnavailableError("server 0 is down");
                        if (asked == 2) return absl::NotFoundError("nothing was left");
                        return asked == 3 ? kSecret - 1 : kSecret;
                      }};
  for (const absl::Status& end : Run(std::move(groups))) EXPECT_TRUE(end.ok()) << end;
  EXPECT_EQ(asked, 4);
}

TEST_F(StrangersTest, RankZeroPublishesTheSecretRepeatedlyWhileItWaits) {
  std::atomic<int> times = 0;
  std::atomic<uint64_t> left = 0;
  std::vector<GroupOptions> groups;
  groups.push_back(Group(0, 2));
  groups.push_back(Group(1, 2));
  groups[0].secret.leave = [&](uint64_t secret) {
    if (++times >= 2) left = secret;  // the first is lost
    return absl::OkStatus();
  };
  groups[1].secret = {0, nullptr, [&]() -> absl::StatusOr<uint64_t> {
                        if (left != 0) return left.load();
                        return absl::NotFoundError("nothing was left");
                      }};
  for (const absl::Status& end : Run(std::move(groups))) EXPECT_TRUE(end.ok()) << end;
}

TEST_F(StrangersTest, TheDeadlineErrorSaysWhyTheSecretIsUnavailable) {
  std::vector<GroupOptions> groups;
  groups.push_back(Group(0, 2, milliseconds(300)));
  groups.push_back(Group(1, 2, milliseconds(300)));
  groups[0].secret.leave = [](uint64_t) { return absl::UnavailableError("server 0 is down"); };
  groups[1].secret = {0, nullptr, []() -> absl::StatusOr<uint64_t> {
                        return absl::NotFoundError("nothing was left");
                      }};
  const std::vector<absl::Status> ends = Run(std::move(groups));
  EXPECT_THAT(ends[0].message(), HasSubstr("could not be published for them: server 0 is down"));
  EXPECT_THAT(ends[1].message(), HasSubstr("worker 0: nothing was left"));
}

TEST_F(StrangersTest, APermanentErrorEndsTheRendezvous) {
  std::vector<GroupOptions> leader;
  leader.push_back(Group(0, 2));
  leader[0].secret.leave = [](uint64_t) { return absl::FailedPreconditionError("cluster ads"); };
  EXPECT_EQ(Run(std::move(leader))[0].code(), absl::StatusCode::kFailedPrecondition);
}

// Another program listens at rank 0's port.
TEST_F(StrangersTest, AnAnswerOfAnotherProgramIsAnError) {
  for (const std::string& answer :
       {std::string("HTTP/1.1 400 Bad Request\r\n"), std::string("T\xff\xff\xff\xff", 5),
        std::string("X\1\0\0\0x", 6)}) {
    std::vector<GroupOptions> other;
    other.push_back(Group(1, 2));
    std::thread server([&] {
      const absl::StatusOr<Socket> guest = listener_.Accept(In(kLong));
      ASSERT_TRUE(guest.ok());
      ASSERT_TRUE(SendAll(*guest, answer.data(), answer.size(), In(kLong)).ok());
      std::string hello(kHelloBytes, ' ');
      EXPECT_TRUE(ReceiveAll(*guest, hello.data(), hello.size(), In(kLong)).ok());
      char rest = 0;
      EXPECT_TRUE(absl::IsUnavailable(ReceiveAll(*guest, &rest, 1, In(kLong))));
    });
    const absl::Status end = Run(std::move(other))[0];
    server.join();
    EXPECT_EQ(end.code(), absl::StatusCode::kFailedPrecondition) << end;
    EXPECT_THAT(end.message(), HasSubstr("another program answers there"));
  }
}

}  // namespace
}  // namespace cistern::group
