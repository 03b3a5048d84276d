// The pass protocol keeps its invariants in every reachable state. Each rule that looks redundant
// is necessary: without the rule, some state violates an invariant.
#include "test/simulation/protocol_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iostream>

#include "test/simulation/protocol_search.h"

namespace cistern {
namespace {

using testing::StartsWith;

constexpr uint64_t kStateLimit = 40'000'000;  // about 3 GiB

// Searches all states, and prints the rules and the result.
SearchResult Search(const std::string& name, const Rules& rules) {
  SearchResult result = SearchProtocol(rules, kStateLimit);
  std::cout << name << ": " << kServers << " servers, " << rules.passes << " passes, "
            << rules.coordinators << " coordinators (terms), " << rules.crashes << " crashes, "
            << (rules.late_message ? 1 : 0) << " late message: " << result.states << " states, "
            << result.depth << " steps deep: "
            << (result.broken.empty() ? "every invariant holds" : "broken " + result.broken)
            << std::endl;
  for (size_t i = 0; i < result.trace.size(); ++i) {
    std::cout << "  " << i + 1 << ". " << result.trace[i] << std::endl;
  }
  EXPECT_TRUE(result.whole) << "the model has more states than the limit";
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

TEST(ProtocolModel, EveryStateHoldsEveryInvariantIfCoordinatorsCreateManifests) {
  Rules rules = WithTwoCoordinators();
  rules.server_decides = false;
  EXPECT_EQ(Search("coordinators create manifests", rules).broken, "");
}

TEST(ProtocolModel, WithoutSequenceNumbersAPushIsAppliedTwice) {
  Rules rules = WithTwoCoordinators();
  rules.sequence_numbers = false;
  EXPECT_EQ(Search("no sequence numbers", rules).broken, "3: a push of pass 1 is in it twice");
}

TEST(ProtocolModel, AnAbortMustNotRemovePreparedFiles) {
  Rules rules = WithTwoCoordinators();
  rules.keep_prepared = false;
  EXPECT_THAT(Search("an abort removes prepared files", rules).broken,
              StartsWith("2: manifest 1 names a file of server"));
}

TEST(ProtocolModel, WithoutTheFenceAnotherAttemptIsCommitted) {
  Rules rules = WithTwoCoordinators();
  rules.epoch_fence = false;
  EXPECT_EQ(Search("no term fence", rules).broken, "3: a push of another attempt is in pass 1");
}

// The search found this flaw in real servers.
TEST(ProtocolModel, AnUnsealedPassMustNotBePrepared) {
  Rules rules = WithTwoCoordinators();
  rules.prepare_needs_seal = false;
  EXPECT_EQ(Search("prepare without seal", rules).broken, "3: a push of pass 1 is not in it");
}

// Server 0 creates manifests one at a time, in order, and therefore never meets an existing name.
// If coordinators create manifests, the exclusive creation of the name is the decision.
TEST(ProtocolModel, AnOverwrittenManifestIsDecidedTwice) {
  Rules rules;
  rules.crashes = 1;
  rules.exclusive_manifest = false;
  EXPECT_EQ(Search("server 0 overwrites manifests", rules).broken, "");
  rules = WithTwoCoordinators();
  rules.server_decides = rules.exclusive_manifest = false;
  EXPECT_THAT(Search("coordinators overwrite manifests", rules).broken,
              StartsWith("1: commit 1 was decided by coordinator 1 and by coordinator 2"));
}

// The fence excludes every coordinator that knows another history, so the hash of the previous
// manifest is redundant while server 0 decides. If coordinators decide, the decision has no fence,
// and a coordinator could continue from a commit that an operator has rolled back.
TEST(ProtocolModel, WithoutThePreviousHashACommitCanFollowARolledBackOne) {
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
