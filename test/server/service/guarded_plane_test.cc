#include "server/service/guarded_plane.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>

namespace cistern {
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
  NodeState state_{ShardMap::Create(4, 1).value(), 0, "ads", 1, 1 << 20, absl::ZeroDuration()};
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

TEST_F(GuardedPlaneTest, EndsTheProcessIfTablesInMemoryMayBeHalfWritten) {
  thrower_.thrower = [] { throw std::bad_alloc(); };
  v1::PassReply reply;
  EXPECT_EXIT((void)plane_.CommitPass({}, &reply), testing::ExitedWithCode(1),
              "out of memory: tables were being changed.*MB");
}

}  // namespace
}  // namespace cistern
