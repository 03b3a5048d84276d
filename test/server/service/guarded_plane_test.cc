#include "server/service/guarded_plane.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>

namespace cistern::server {
namespace {

using testing::HasSubstr;

// Throws what the test chooses, in every call.
class ThrowingPlane : public ControlPlane {
 public:
  std::function<void()> thrower;
#define CISTERN_METHOD(name, request, reply, length, effect, role) \
  absl::Status name(const v1::request&, v1::reply*) override {     \
    thrower();                                                     \
    return absl::OkStatus();                                       \
  }
  CISTERN_CONTROL_METHODS(CISTERN_METHOD)
#undef CISTERN_METHOD
};

class GuardedPlaneTest : public testing::Test {
 protected:
  NodeState state_{ShardMap::Create(4, 1).value(), 0, "ads", 1, 1 << 20};
  ThrowingPlane thrower_;
  GuardedPlane plane_{&state_, &thrower_};
};

TEST_F(GuardedPlaneTest, TurnsEveryExceptionIntoAStatus) {
  v1::SaveReply reply;
  thrower_.thrower = [] { throw std::bad_alloc(); };
  EXPECT_EQ(plane_.Save({}, &reply).code(), absl::StatusCode::kResourceExhausted);
  thrower_.thrower = [] { throw std::length_error("vector::resize"); };
  const absl::Status status = plane_.Save({}, &reply);
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), HasSubstr("vector::resize"));
  thrower_.thrower = [] { throw 7; };
  EXPECT_EQ(plane_.Save({}, &reply).code(), absl::StatusCode::kInternal);
  EXPECT_EQ(state_.refusals.refused(), 3u);
}

// A message as a newer version may send it: with a field 1000.
template <class Message>
Message WithNewField(Message message = {}) {
  message.GetReflection()->MutableUnknownFields(&message)->AddVarint(1000, 1);
  Message received;
  EXPECT_TRUE(received.ParseFromString(message.SerializeAsString()));
  return received;
}

TEST_F(GuardedPlaneTest, RefusesChangesWithFieldsThatItDoesNotKnow) {
  int calls = 0;
  thrower_.thrower = [&calls] { ++calls; };
  v1::SaveReply saved;
  EXPECT_TRUE(plane_.Save({}, &saved).ok());
  const absl::Status status = plane_.Save(WithNewField<v1::SaveRequest>(), &saved);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("field 1000 of SaveRequest"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("upgrade the servers first"));

  // At any depth: a file of a manifest.
  v1::DecideRequest decide;
  decide.mutable_manifest()->add_files()->set_name("a");
  v1::DecideReply decided;
  EXPECT_TRUE(plane_.Decide(decide, &decided).ok());
  *decide.mutable_manifest()->add_files() = WithNewField<v1::RowFile>();
  EXPECT_EQ(plane_.Decide(decide, &decided).code(), absl::StatusCode::kFailedPrecondition);
  v1::PassRequest begin;
  *begin.mutable_identity() = WithNewField<v1::Identity>();
  v1::PassReply begun;
  EXPECT_EQ(plane_.BeginPass(begin, &begun).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(state_.refusals.refused(), 3u);

  // Who only looks gets what this version can tell.
  v1::StatsReply stats;
  EXPECT_TRUE(plane_.Stats(WithNewField<v1::StatsRequest>(), &stats).ok());
  EXPECT_EQ(calls, 3);
}

TEST_F(GuardedPlaneTest, EndsTheProcessIfTablesInMemoryMayBeHalfWritten) {
  thrower_.thrower = [] { throw std::bad_alloc(); };
  v1::PassReply reply;
  EXPECT_EXIT((void)plane_.CommitPass({}, &reply), testing::ExitedWithCode(1),
              "out of memory: tables were being changed.*MB");
}

}  // namespace
}  // namespace cistern::server
