// The pass protocol keeps its invariants in every state that can be reached, and each part of it
// that looks as if one could do without it is there for a reason: without it a state breaks them.
#include "test/simulation/protocol_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iostream>

#include "test/simulation/protocol_search.h"

namespace cistern {
namespace {

using testing::StartsWith;

constexpr uint64_t kStateLimit = 40'000'000;  // about 3 GiB

// Visits everything, and prints what it was and what came out.
SearchResult Search(const std::string& name, const Rules& rules) {
  SearchResult result = SearchProtocol(rules, kStateLimit);
  std::cout << name << ": " << kServers << " servers, " << rules.passes << " passes, "
            << rules.coordinators << " coordinators (epochs), " << rules.crashes << " crashes, "
            << (rules.late_message ? 1 : 0) << " late message: " << result.states << " states, "
            << result.depth << " steps deep: "
            << (result.broken.empty() ? "every invariant holds" : "broken " + result.broken)
            << std::endl;
  for (size_t i = 0; i < result.trace.size(); ++i) {
    std::cout << "  " << i + 1 << ". " << result.trace[i] << std::endl;
  }
  EXPECT_TRUE(result.whole) << "there are more states than the limit";
  return result;
}

Rules WithTwoCoordinators() {
  Rules rules;
  rules.coordinators = 2;
  return rules;
}

TEST(ProtocolModel, EveryStateHoldsEveryInvariant) {
  const SearchResult result = Search("the protocol", Rules());
  EXPECT_EQ(result.broken, "");
  EXPECT_GT(result.states, 1'000'000u);
}

TEST(ProtocolModel, EveryStateHoldsThemWhereCoordinatorsCreateManifestsThemselves) {
  Rules rules = WithTwoCoordinators();
  rules.server_decides = false;
  EXPECT_EQ(Search("coordinators create manifests", rules).broken, "");
}

TEST(ProtocolModel, WithoutSequenceNumbersAPushIsAppliedTwice) {
  Rules rules = WithTwoCoordinators();
  rules.sequence_numbers = false;
  EXPECT_EQ(Search("no sequence numbers", rules).broken, "3: a push of pass 1 is in it twice");
}

TEST(ProtocolModel, APreparedFileThatAnAbortRemovesIsMissing) {
  Rules rules = WithTwoCoordinators();
  rules.keep_prepared = false;
  EXPECT_THAT(Search("an abort removes what was prepared", rules).broken,
              StartsWith("2: manifest 1 names a file of server"));
}

TEST(ProtocolModel, WithoutFenceAnotherAttemptIsCommitted) {
  Rules rules = WithTwoCoordinators();
  rules.epoch_fence = false;
  EXPECT_EQ(Search("no epoch fence", rules).broken, "3: a push of another attempt is in pass 1");
}

// The search found this one in the servers as they were.
TEST(ProtocolModel, WhatNobodySealedMustNotBePrepared) {
  Rules rules = WithTwoCoordinators();
  rules.prepare_needs_seal = false;
  EXPECT_EQ(Search("prepare without seal", rules).broken, "3: a push of pass 1 is not in it");
}

// Server 0 names manifests one after the other and only the next one, so that it never meets a name
// that is taken. Where coordinators name them, the exclusive name is what decides.
TEST(ProtocolModel, AManifestThatIsWrittenOverIsDecidedTwice) {
  Rules rules;
  rules.crashes = 1;
  rules.exclusive_manifest = false;
  EXPECT_EQ(Search("manifests are written over, by server 0", rules).broken, "");
  rules = WithTwoCoordinators();
  rules.server_decides = rules.exclusive_manifest = false;
  EXPECT_THAT(Search("manifests are written over, by coordinators", rules).broken,
              StartsWith("1: commit 1 was decided by coordinator 1 and by coordinator 2"));
}

// The fence keeps out every coordinator that knows another history, so that the hash of the
// manifest before is a second lock on the same door. Where there is no fence at the decision
// (coordinators decide), one goes on from a commit that an operator has taken back.
TEST(ProtocolModel, WithoutThePreviousHashACommitFollowsOneThatWasTakenBack) {
  Rules rules;
  rules.crashes = 1;
  rules.check_previous = false;
  EXPECT_EQ(Search("no previous hash, server 0 decides", rules).broken, "");
  rules = WithTwoCoordinators();
  rules.server_decides = rules.check_previous = false;
  rules.rollback = true;
  EXPECT_EQ(Search("no previous hash, coordinators decide", rules).broken,
            "1: manifest 2 does not follow manifest 1");
}

}  // namespace
}  // namespace cistern
