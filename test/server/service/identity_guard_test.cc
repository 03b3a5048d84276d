#include "server/service/identity_guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cistern::server {
namespace {

using testing::HasSubstr;

constexpr uint64_t kSchema = 77;

class IdentityGuardTest : public testing::Test {
 protected:
  std::string Refusal(const CallIdentity& identity, uint64_t schema_hash = kSchema) {
    const absl::Status status = guard_.Check(identity, schema_hash);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    return std::string(status.message());
  }

  IdentityGuard guard_{"ads", ShardMap::Create(64, 3).value()};
  const CallIdentity own_ = IdentityOf(guard_.Own(kSchema));
};

TEST_F(IdentityGuardTest, AcceptsItsOwnIdentity) {
  EXPECT_EQ(guard_.Check(own_, kSchema), absl::OkStatus());
}

TEST_F(IdentityGuardTest, NamesThePartThatDiffers) {
  CallIdentity other = own_;
  ++other.cluster_id;
  EXPECT_THAT(Refusal(other), HasSubstr("'ads'"));
  other = own_;
  ++other.shard_map_hash;
  EXPECT_THAT(Refusal(other), HasSubstr("64 shards are on 3 servers"));
  other = own_;
  ++other.schema_hash;
  EXPECT_THAT(Refusal(other), HasSubstr("another model"));
}

TEST_F(IdentityGuardTest, DistinguishesALostStateFromAnEarlyCaller) {
  EXPECT_THAT(Refusal(own_, 0), HasSubstr("has lost its state"));
  CallIdentity early = own_;
  early.schema_hash = 0;
  EXPECT_THAT(Refusal(early), HasSubstr("connect again"));
}

TEST_F(IdentityGuardTest, FencesOlderTermsAndRecognizesNewerOnes) {
  ASSERT_TRUE(guard_.Claim(5).ok());
  CallIdentity caller = own_;
  caller.term = 4;
  EXPECT_THAT(Refusal(caller), HasSubstr("term 4 is fenced"));
  caller.term = 6;
  EXPECT_THAT(Refusal(caller), HasSubstr("has lost its state"));
  caller.term = 5;
  EXPECT_TRUE(guard_.Check(caller, kSchema).ok());
}

TEST_F(IdentityGuardTest, ClaimsOnlyIncrease) {
  EXPECT_TRUE(guard_.Claim(5).ok());
  EXPECT_FALSE(guard_.Claim(5).ok());
  EXPECT_FALSE(guard_.Claim(4).ok());
  EXPECT_EQ(guard_.term(), 5u);
  EXPECT_TRUE(guard_.Claim(9).ok());
}

}  // namespace
}  // namespace cistern::server
