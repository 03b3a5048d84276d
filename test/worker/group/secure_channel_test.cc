// Process groups whose connections speak TLS.
#include "worker/group/secure_channel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <thread>
#include <vector>

#include "test/support/certificates.h"
#include "worker/group/tcp_communicator.h"

namespace cistern::group {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

// The ranks of one group, as threads.
class SecureGroupTest : public testing::Test {
 protected:
  using Context = std::shared_ptr<const SecureContext>;

  Context ContextOf(const TlsFiles& files, const std::string& cluster = "cistern") {
    absl::StatusOr<Context> context = SecureContext::Create(files, cluster);
    EXPECT_TRUE(context.ok()) << context.status();
    return *context;
  }
  Context Worker(const TestAuthority& authority, const std::string& name) {
    return ContextOf(authority.Issue(name, {Role::kWorker}));
  }
  // Each rank joins with its context and runs `body`; the final statuses.
  std::vector<absl::Status> Run(const std::vector<Context>& contexts, milliseconds limit,
                                const std::function<absl::Status(Communicator&)>& body) {
    absl::StatusOr<Listener> listener = Listener::Open(0, "127.0.0.1");
    const uint16_t port = listener->port();
    std::vector<absl::Status> ends(contexts.size());
    std::vector<std::thread> threads;
    for (size_t rank = 0; rank < contexts.size(); ++rank) {
      GroupOptions group;
      group.rank = static_cast<int>(rank);
      group.size = static_cast<int>(contexts.size());
      group.address = absl::StrCat("127.0.0.1:", port);
      group.secret.value = 4711;
      group.gather_limit = group.deadline = limit;
      group.tls = contexts[rank];
      if (rank == 0) group.listener = *std::move(listener);
      threads.emplace_back([&, rank, group = std::move(group)]() mutable {
        absl::StatusOr<std::unique_ptr<Communicator>> peers = ConnectOverTcp(std::move(group));
        ends[rank] = peers.ok() ? body(**peers) : peers.status();
      });
    }
    for (std::thread& thread : threads) thread.join();
    return ends;
  }
  static absl::Status Sum(Communicator& peers, size_t count) {
    Stream stream;
    std::vector<double> numbers(count);
    std::iota(numbers.begin(), numbers.end(), 0.0);
    CISTERN_RETURN_IF_ERROR(peers.AllReduce(numbers.data(), count, ElementType::kDouble, stream));
    for (size_t i = 0; i < count; ++i) {
      if (numbers[i] != static_cast<double>(i) * peers.size()) {
        return absl::InternalError(absl::StrCat("number ", i, " is ", numbers[i]));
      }
    }
    return absl::OkStatus();
  }

  const TestAuthority authority_;
};

TEST_F(SecureGroupTest, SumsOfAllSizesArrive) {
  const std::vector<Context> contexts = {Worker(authority_, "a"), Worker(authority_, "b"),
                                         Worker(authority_, "c")};
  for (const absl::Status& end : Run(contexts, milliseconds(60000), [](Communicator& peers) {
         for (const size_t count : {1u, 7u, 2048u, 100'000u, 3'000'000u, 1u}) {
           CISTERN_RETURN_IF_ERROR(Sum(peers, count));
         }
         return absl::OkStatus();
       })) {
    EXPECT_TRUE(end.ok()) << end;
  }
}

TEST_F(SecureGroupTest, ExchangesOfUnequalSizesArrive) {
  const std::vector<Context> contexts = {Worker(authority_, "a"), Worker(authority_, "b")};
  for (const absl::Status& end : Run(contexts, milliseconds(60000), [](Communicator& peers) {
         Stream stream;
         for (size_t round = 0; round < 50; ++round) {
           // Rank 0 sends much and receives little, then the other way round.
           const size_t much = 1'000'003 * (round % 3), little = round;
           const bool sends_much = (peers.rank() == 0) == (round % 2 == 0);
           const size_t out = sends_much ? much : little, in = sends_much ? little : much;
           const size_t own = static_cast<size_t>(peers.rank()), other = 1 - own;
           std::vector<size_t> send(2), receive(2);
           send[other] = out;
           receive[other] = in;
           const std::string from(out, static_cast<char>('a' + own));
           std::string to(in, '?');
           CISTERN_RETURN_IF_ERROR(peers.AllToAll(from.data(), send, to.data(), receive, stream));
           if (to != std::string(in, static_cast<char>('a' + other))) {
             return absl::InternalError(absl::StrCat("round ", round));
           }
         }
         return absl::OkStatus();
       })) {
    EXPECT_TRUE(end.ok()) << end;
  }
}

TEST_F(SecureGroupTest, AReasonReachesTheOthers) {
  const std::vector<Context> contexts = {Worker(authority_, "a"), Worker(authority_, "b")};
  const std::vector<absl::Status> ends =
      Run(contexts, milliseconds(20000), [](Communicator& peers) {
        if (peers.rank() == 1) {
          peers.Abort(absl::ResourceExhaustedError("its disk is full"));
          return absl::OkStatus();
        }
        return Sum(peers, 100);
      });
  EXPECT_TRUE(absl::IsResourceExhausted(ends[0])) << ends[0];
  EXPECT_THAT(std::string(ends[0].message()), HasSubstr("its disk is full"));
}

TEST_F(SecureGroupTest, OnlyWorkersOfTheClusterJoin) {
  const TestAuthority other;
  const auto joins = [&](const Context& stranger) {
    const std::vector<absl::Status> ends =
        Run({Worker(authority_, "a"), stranger}, milliseconds(1500),
            [](Communicator& peers) { return Sum(peers, 10); });
    EXPECT_EQ(ends[0].ok(), ends[1].ok());
    return ends;
  };
  EXPECT_TRUE(joins(Worker(authority_, "b"))[0].ok());
  EXPECT_FALSE(joins(nullptr)[0].ok());  // plain text
  const std::vector<absl::Status> of_other = joins(Worker(other, "b"));
  EXPECT_TRUE(absl::IsPermissionDenied(of_other[1])) << of_other[1];
  // It calls itself a worker of another cluster, and this one does not care.
  const std::vector<absl::Status> elsewhere =
      joins(ContextOf(authority_.Issue("c", {Role::kWorker}, "feed"), "feed"));
  EXPECT_TRUE(absl::IsPermissionDenied(elsewhere[1])) << elsewhere[1];
}

TEST_F(SecureGroupTest, APlainGroupAdmitsNoTls) {
  const std::vector<absl::Status> ends = Run({nullptr, Worker(authority_, "b")}, milliseconds(1500),
                                             [](Communicator& peers) { return Sum(peers, 10); });
  EXPECT_FALSE(ends[0].ok());
  EXPECT_FALSE(ends[1].ok());
}

TEST(SecureContext, NeedsTheRoleWorker) {
  const TestAuthority authority;
  EXPECT_EQ(*SecureContext::Create({}, "cistern"), nullptr);
  EXPECT_TRUE(SecureContext::Create(authority.Issue("a", {Role::kAdmin}), "cistern").ok());
  const absl::Status reader =
      SecureContext::Create(authority.Issue("r", {Role::kReader}), "cistern").status();
  EXPECT_TRUE(absl::IsPermissionDenied(reader)) << reader;
  EXPECT_THAT(OptionsOf(reader), testing::ElementsAre("certs.issue.role=worker"));
  EXPECT_TRUE(absl::IsPermissionDenied(
      SecureContext::Create(authority.Issue("f", {Role::kWorker}, "feed"), "cistern").status()));
}

}  // namespace
}  // namespace cistern::group
