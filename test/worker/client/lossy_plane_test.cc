// Calls that fail in transit: retried until they succeed, applied once, abandoned in time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "test/worker/client/embedded_fleet.h"

namespace cistern {
namespace {

using testing::HasSubstr;

// A data plane that loses every `period`-th call: alternately the request, before the server sees
// it, and the reply, after the server has applied the call.
class LossyPlane : public DataPlane {
 public:
  LossyPlane(DataPlane* next, int period) : next_(next), period_(period) {}

  void Call(FrameKind kind, Frame request, absl::Duration timeout, Done done) override {
    const int call = ++calls_;
    if (call % period_ != 0) return next_->Call(kind, std::move(request), timeout, done);
    ++lost_;
    if (lost_ % 2 == 0) {
      next_->Call(kind, std::move(request), timeout, [](absl::StatusOr<Frame>) {});
      done(absl::DeadlineExceededError("reply lost"));
    } else {
      done(absl::UnavailableError("request lost"));
    }
  }
  int lost() const { return lost_; }

 private:
  DataPlane* const next_;
  const int period_;
  std::atomic<int> calls_{0}, lost_{0};
};

uint64_t RowsOf(server::ServerNode& node, const v1::Identity& identity) {
  v1::StatsRequest request;
  *request.mutable_identity() = identity;
  v1::StatsReply reply;
  EXPECT_TRUE(node.control().Stats(request, &reply).ok());
  return reply.tables(kDeep).rows();
}

TEST(LossyPlane, EveryPeriodAndAnyNumberOfSendersGiveTheSameRows) {
  for (const auto& [period, senders] : {std::pair(2, 1), std::pair(3, 1), std::pair(7, 1),
                                        std::pair(2, 4), std::pair(3, 4), std::pair(7, 4)}) {
    const std::vector<Key> keys = TestKeys(300 * static_cast<size_t>(period));
    EmbeddedFleet fleet(2);
    std::vector<ServerLink> links = fleet.Links();
    LossyPlane a(links[0].data, period), b(links[1].data, period);
    links[0].data = &a;
    links[1].data = &b;
    ClientOptions options;
    options.chunk_bytes = 4096;
    options.senders = senders;
    auto client = Writer(links, options);
    ASSERT_TRUE(CommitKeys(*client, keys).ok());
    const Pulled pulled = PullKeys(*client, kDeep, keys);
    ASSERT_TRUE(pulled.status.ok()) << pulled.status;
    EXPECT_EQ(pulled.values, ValuesOf(keys, client->layout(kDeep).full_floats()));
    EXPECT_GE(a.lost(), 4);
    EXPECT_GE(b.lost(), 4);
    EXPECT_EQ(RowsOf(fleet.node(0), client->identity()) + RowsOf(fleet.node(1), client->identity()),
              keys.size());
  }
}

// Refuses all calls once `dead` is set.
class DyingPlane : public DataPlane {
 public:
  explicit DyingPlane(DataPlane* next) : next_(next) {}
  void Call(FrameKind kind, Frame request, absl::Duration timeout, Done done) override {
    if (dead) return done(absl::UnavailableError("connection refused"));
    next_->Call(kind, std::move(request), timeout, std::move(done));
  }
  std::atomic<bool> dead{false};

 private:
  DataPlane* const next_;
};

TEST(DyingPlane, IsNamedWhenTheRetryLimitIsReached) {
  EmbeddedFleet fleet(2);
  std::vector<ServerLink> links = fleet.Links();
  DyingPlane plane(links[0].data);  // rank 1
  links[0].data = &plane;
  ClientOptions options;
  options.retry_limit = absl::Milliseconds(300);
  auto client = Writer(links, options);
  plane.dead = true;
  const Pulled pulled = PullKeys(*client, kDeep, TestKeys(100));
  EXPECT_EQ(pulled.status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(pulled.status.message()), HasSubstr("server 1 (embedded-1): no answer"));
  EXPECT_THAT(std::string(pulled.status.message()), HasSubstr("connection refused"));
  plane.dead = false;
  EXPECT_TRUE(PullKeys(*client, kDeep, TestKeys(100)).status.ok());
}

// Corrupts replies.
class LyingPlane : public DataPlane {
 public:
  explicit LyingPlane(DataPlane* next) : next_(next) {}
  void Call(FrameKind kind, Frame request, absl::Duration timeout, Done done) override {
    next_->Call(kind, std::move(request), timeout, [&](absl::StatusOr<Frame> reply) {
      std::string bytes(reply->size(), '\0');
      ASSERT_TRUE(FrameReader(*reply).Read(bytes.data(), bytes.size()));
      bytes.resize(bytes.size() - 1);
      done(Frame(bytes));
    });
  }

 private:
  DataPlane* const next_;
};

TEST(LyingPlane, CorruptRepliesAreRefusedWithoutARetry) {
  EmbeddedFleet fleet(1);
  std::vector<ServerLink> links = fleet.Links();
  LyingPlane plane(links[0].data);
  links[0].data = &plane;
  auto client = Writer(links);
  EXPECT_EQ(PullKeys(*client, kDeep, {1}).status.code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace cistern
