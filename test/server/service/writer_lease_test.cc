#include "server/service/writer_lease.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cistern::server {
namespace {

using testing::HasSubstr;

constexpr uint64_t kMine = 11, kOther = 22;

absl::Status FreeFor(const WriterLease& lease, uint64_t secret) {
  const uint64_t own[] = {secret};
  return lease.CheckFree(own);
}

TEST(WriterLease, ANewFleetHasNoWriterAndRequiresNoSecret) {
  const WriterLease lease;
  EXPECT_EQ(FreeFor(lease, 0), absl::OkStatus());
  EXPECT_EQ(lease.Check(0), absl::OkStatus());
  EXPECT_EQ(lease.WriterAtWork({}), "");
}

TEST(WriterLease, OnlyTheSecretOfTheClaimMayWrite) {
  WriterLease lease;
  lease.Take(kMine, "cistern train");
  EXPECT_EQ(lease.Check(kMine), absl::OkStatus());
  for (const uint64_t stranger : {uint64_t{0}, kOther, ~uint64_t{0}}) {
    EXPECT_EQ(lease.Check(stranger).code(), absl::StatusCode::kFailedPrecondition) << stranger;
  }
}

TEST(WriterLease, AConnectedWriterKeepsOthersOut) {
  WriterLease lease;
  lease.Take(kMine, "cistern train, process 7 on host-3");
  ASSERT_EQ(lease.BeginHold(kMine, false), absl::OkStatus());
  const absl::Status refused = FreeFor(lease, kOther);
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("process 7 on host-3"));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("take over"));
  EXPECT_EQ(lease.WriterAtWork({}), "cistern train, process 7 on host-3");
  EXPECT_EQ(FreeFor(lease, kMine), absl::OkStatus());  // its own claim
  EXPECT_EQ(lease.WriterAtWork({kMine}), "");
}

TEST(WriterLease, AWriterWithoutAConnectionGivesWay) {
  WriterLease lease;
  lease.Take(kMine, "first");
  EXPECT_EQ(lease.Check(kMine), absl::OkStatus());
  EXPECT_EQ(FreeFor(lease, kOther), absl::OkStatus());
}

// The server grants a claim whose caller was killed while it waited for the answer.
TEST(WriterLease, AConnectionThatOpensBeforeTheClaimCountsFromThere) {
  WriterLease lease;
  ASSERT_EQ(lease.BeginHold(kMine, true), absl::OkStatus());
  EXPECT_EQ(FreeFor(lease, kOther), absl::OkStatus());  // it has not claimed yet
  lease.Take(kMine, "first");
  EXPECT_FALSE(FreeFor(lease, kOther).ok());
  lease.EndHold(kMine);
  EXPECT_EQ(FreeFor(lease, kOther), absl::OkStatus());

  ASSERT_EQ(lease.BeginHold(kOther, true), absl::OkStatus());
  lease.EndHold(kOther);
  lease.Take(kOther, "second");  // too late: its caller is gone
  EXPECT_EQ(lease.WriterAtWork({}), "");
}

TEST(WriterLease, CallersThatAreAboutToClaimCannotKeepTheWriterOut) {
  WriterLease lease;
  lease.Take(kMine, "first");
  for (int i = 0; i < WriterLease::kMaxClaimants; ++i) {
    ASSERT_EQ(lease.BeginHold(kOther + i, true), absl::OkStatus());
  }
  EXPECT_EQ(lease.BeginHold(kOther, true).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(lease.BeginHold(kMine, false), absl::OkStatus());
  EXPECT_EQ(lease.WriterAtWork({}), "first");
}

TEST(WriterLease, AWriterIsGoneWhenItsLastConnectionEnds) {
  WriterLease lease;
  lease.Take(kMine, "first");
  ASSERT_EQ(lease.BeginHold(kMine, false), absl::OkStatus());
  ASSERT_EQ(lease.BeginHold(kMine, false), absl::OkStatus());
  lease.EndHold(kMine);
  EXPECT_FALSE(FreeFor(lease, kOther).ok());
  lease.EndHold(kMine);
  EXPECT_EQ(FreeFor(lease, kOther), absl::OkStatus());
}

TEST(WriterLease, StrangersCannotHoldOrEndAHold) {
  WriterLease lease;
  EXPECT_FALSE(lease.BeginHold(0, true).ok());
  lease.Take(kMine, "first");
  EXPECT_FALSE(lease.BeginHold(kOther, false).ok());
  ASSERT_EQ(lease.BeginHold(kMine, false), absl::OkStatus());
  lease.EndHold(kOther);
  EXPECT_FALSE(FreeFor(lease, kOther).ok());
}

TEST(WriterLease, AnOlderWritersConnectionDoesNotEndTheNewersHold) {
  WriterLease lease;
  lease.Take(kMine, "first");
  ASSERT_EQ(lease.BeginHold(kMine, false), absl::OkStatus());
  lease.Take(kOther, "second");
  ASSERT_EQ(lease.BeginHold(kOther, false), absl::OkStatus());
  lease.EndHold(kMine);
  EXPECT_EQ(lease.WriterAtWork({}), "second");
}

TEST(WriterLease, AfterARestartTheWriterOnDiskContinuesButNoClaimWaitsForIt) {
  WriterLease lease;
  lease.Restore(kMine, "first");
  EXPECT_EQ(FreeFor(lease, kOther), absl::OkStatus());
  EXPECT_EQ(lease.Check(kOther).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(lease.Check(kMine), absl::OkStatus());
  ASSERT_EQ(lease.BeginHold(kMine, false), absl::OkStatus());
  EXPECT_FALSE(FreeFor(lease, kOther).ok());  // its connection counts
}

TEST(WriterLease, AnUnreadableWriterMustClaimAgain) {
  WriterLease lease;
  lease.Restore(std::nullopt, "");
  EXPECT_EQ(lease.Check(0).code(), absl::StatusCode::kAborted);
  EXPECT_EQ(lease.secret().status().code(), absl::StatusCode::kAborted);
  lease.Take(kMine, "again");
  EXPECT_EQ(*lease.secret(), kMine);
}

TEST(PlainWriterName, IsALineOfText) {
  EXPECT_EQ(PlainWriterName("train\n2026 refused Push"), "train?2026 refused Push");
  EXPECT_EQ(PlainWriterName(std::string(1 << 20, 'x')).size(), 200u);
  EXPECT_EQ(PlainWriterName(""), "a writer without a name");
}

}  // namespace
}  // namespace cistern::server
