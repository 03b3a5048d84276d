#include "worker/group/reception.h"

#include <gmock/gmock.h>
#include <sys/resource.h>

#include "absl/strings/match.h"
#include "test/worker/group/strangers.h"

namespace cistern::group {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

constexpr uint64_t kSecret = 0x5ec2e7;
constexpr milliseconds kReceptionLimit{60000};

class ReceptionTest : public testing::Test {
 protected:
  void SetUp() override {
    absl::StatusOr<Listener> listener = Listener::Open(0, "127.0.0.1");
    ASSERT_TRUE(listener.ok()) << listener.status();
    listener_ = *std::move(listener);
  }
  std::string RightHello(uint32_t rank = 1) const { return FormatHello({kSecret, rank, 2, 9}); }
  Socket Stranger(const std::string& bytes) { return StrangerAt(listener_.port(), bytes); }

  // Connects a guest of `rank` last, and expects its admission.
  void ExpectGuest(Reception& reception, uint32_t rank) {
    const Socket guest = Stranger(RightHello(rank));
    const absl::StatusOr<Reception::Guest> next = reception.Next(In(kReceptionLimit));
    ASSERT_TRUE(next.ok()) << next.status();
    EXPECT_EQ(next->hello.rank, rank);
  }

  Listener listener_;
};

TEST_F(ReceptionTest, AdmitsConnectionsWithTheSecretAndCountsTheOthers) {
  Reception reception(listener_, kSecret);
  EXPECT_EQ(reception.Dropped(), "");
  const Socket one = SilencedStrangerAt(listener_.port(), RightHello().substr(0, 20));
  const Socket two = SilencedStrangerAt(listener_.port(), "");
  const Socket three = Stranger(std::string(84, 'x'));
  const Socket four = Stranger("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const Socket five = Stranger(FormatHello({kSecret + 1, 1, 2, 9}));
  const Socket six = Stranger(FormatHello({0, 1, 2, 9}));
  const Socket seven = Stranger(FormatHello({kSecret ^ (uint64_t{1} << 63), 7, 3, 9}));
  // They were accepted before the guest; the round that reads the guest also reads them completely.
  ExpectGuest(reception, 1);
  EXPECT_TRUE(absl::IsDeadlineExceeded(reception.Next(In(milliseconds(0))).status()));
  EXPECT_EQ(
      reception.Dropped(),
      "dropped 7 connections that do not belong to this run: 2 closed before their hello, 2 of "
      "another program or version, 3 with another secret");
  for (const Socket* dropped : {&three, &four, &five, &six, &seven}) {
    char byte = 0;
    EXPECT_TRUE(absl::IsUnavailable(ReceiveAll(*dropped, &byte, 1, In(kReceptionLimit))));
  }
}

TEST_F(ReceptionTest, ReadsAHelloInPiecesWhileOthersWait) {
  Reception reception(listener_, kSecret);
  const std::string hello = RightHello(3);
  const Socket slow = Stranger(hello.substr(0, 1));
  for (size_t i = 1; i < hello.size(); ++i) {
    ExpectGuest(reception, static_cast<uint32_t>(i + 3));
    ASSERT_TRUE(SendAll(slow, &hello[i], 1, In(kReceptionLimit)).ok());
  }
  const absl::StatusOr<Reception::Guest> next = reception.Next(In(kReceptionLimit));
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_EQ(next->hello.rank, 3u);
  EXPECT_EQ(reception.Dropped(), "");
}

TEST_F(ReceptionTest, LeavesBytesAfterAHelloUnread) {
  Reception reception(listener_, kSecret);
  const Socket guest = Stranger(RightHello() + "more");
  const absl::StatusOr<Reception::Guest> next = reception.Next(In(kReceptionLimit));
  ASSERT_TRUE(next.ok()) << next.status();
  std::string more(4, ' ');
  ASSERT_TRUE(ReceiveAll(next->socket, more.data(), more.size(), In(kReceptionLimit)).ok());
  EXPECT_EQ(more, "more");
}

TEST_F(ReceptionTest, SilentConnectionsCostNothingAndMakeRoom) {
  Reception reception(listener_, kSecret);
  std::vector<Socket> silent;
  for (size_t i = 0; i < Reception::kMaxWaiting + 40; ++i) silent.push_back(Stranger(""));
  ExpectGuest(reception, 1);
  EXPECT_THAT(reception.Dropped(), HasSubstr("41 closed to make room"));
}

TEST_F(ReceptionTest, DropsConnectionsThatStaySilent) {
  Reception reception(listener_, kSecret, milliseconds(20));
  const Socket silent = Stranger(""), half = Stranger(RightHello().substr(0, 27));
  while (!absl::StrContains(reception.Dropped(), "2 silent")) {
    EXPECT_TRUE(absl::IsDeadlineExceeded(reception.Next(In(milliseconds(10))).status()));
  }
  EXPECT_EQ(reception.Dropped(), "dropped 2 connections that do not belong to this run: 2 silent");
}

// Without free descriptors the oldest connection is closed, and the next one is admitted.
TEST_F(ReceptionTest, SurvivesRunningOutOfDescriptors) {
  Reception reception(listener_, kSecret);
  const Socket silent = Stranger("");
  EXPECT_TRUE(absl::IsDeadlineExceeded(reception.Next(In(milliseconds(0))).status()));
  const Socket guest = Stranger(RightHello(4));
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none_left = before;
  none_left.rlim_cur =
      static_cast<rlim_t>(guest.descriptor()) + 2;  // the one of `silent`, accepted
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none_left), 0);
  std::vector<Socket> fill;
  for (int copy = dup(0); copy >= 0; copy = dup(0)) fill.emplace_back(copy);
  const absl::StatusOr<Reception::Guest> next = reception.Next(In(kReceptionLimit));
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_EQ(next->hello.rank, 4u);
  EXPECT_THAT(reception.Dropped(), HasSubstr("1 closed to make room"));
}

}  // namespace
}  // namespace cistern::group
