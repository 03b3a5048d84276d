// The list of update rules with one of somebody else (toy_rule.h).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/value/deferred_updates.h"
#include "common/value/update_rule.h"

namespace cistern {
namespace {

using ::testing::ElementsAre;

TEST(MoreUpdateRules, OneOfSomebodyElseIsListedAfterTheLibrarys) {
  EXPECT_STREQ(UpdateRules().back().type, "Sign");
  EXPECT_EQ(FindUpdateRule("Sign")->kind, SignRule::kKind);
  EXPECT_STREQ(InfoOf(SignRule::kKind).hparam, "sign_hparam");
  EXPECT_EQ(FindUpdateRule("SGD")->kind, RuleKind::kSgd);
}

TEST(MoreUpdateRules, OneOfSomebodyElseMovesRows) {
  RuleParams rule;
  rule.kind = SignRule::kKind;
  EXPECT_EQ(RowStateFloats(rule, 3), 3u);
  float weight[] = {1, 2, 3}, state[] = {0, 0, 5};
  const float grad[] = {-0.5f, 4, 0.25f};
  ApplyRule(rule, StepSize(rule, 0.5, 1), 3, grad, weight, state);
  EXPECT_THAT(weight, ElementsAre(1.5f, 1.5f, 2.5f));
  EXPECT_THAT(state, ElementsAre(1, 1, 6));
}

}  // namespace
}  // namespace cistern
