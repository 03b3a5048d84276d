#include "worker/report/run_history.h"

#include <gtest/gtest.h>

namespace cistern::report {
namespace {

constexpr char kMetricLines[] =
    R"({"event":"train","iter":50,"samples":1000,"loss":0.5,"lr":0.01,"seconds":1})"
    "\n"
    R"({"event":"pass","iter":60,"samples":1200,"loss":0.4,"seconds":2,"phases":{"train":1.5}})"
    "\n"
    R"({"event":"eval","iter":60,"samples":1200,"auc":null,"logloss":0.3,"keys":9,"seconds":2.5})"
    "\n"
    R"({"event":"lost","iter":60,"samples":1200,"seconds":2.6,"message":"server 1"})"
    "\n"
    R"({"event":"warning","iter":60,"samples":1200,"seconds":2.7,"message":"careful"})"
    "\n"
    R"({"event":"warning","iter":60,"samples":1200,"seconds":2.8,"message":"careful"})"
    "\n"
    R"({"event":"final","iter":60,"samples":1200,"auc":0.7,)"
    R"("seconds":3,"phases":{"train":0.5,"x":-1}})"
    "\n{\"event\":\"train\",\"it";

TEST(RunHistory, ReadsTheEventsOfARun) {
  const RunHistory history = ParseHistory(kMetricLines);
  ASSERT_EQ(history.train.size(), 1u);  // lines "pass" are for runs without lines "train"
  EXPECT_EQ(history.train[0].loss, 0.5);
  ASSERT_EQ(history.evals.size(), 1u);
  EXPECT_EQ(history.evals[0].auc, std::nullopt);
  EXPECT_EQ(history.evals[0].keys, 9u);
  ASSERT_TRUE(history.final);
  EXPECT_EQ(history.final->auc, 0.7);
  EXPECT_EQ(history.warnings, std::vector<std::string>({"careful"}));
  EXPECT_EQ(history.phases, (std::map<std::string, double>{{"train", 2.0}}));
  EXPECT_EQ(history.seconds, 3);
  EXPECT_EQ(history.losses, 1u);
}

TEST(RunHistory, TakesPassesIfThereAreNoTrainLines) {
  EXPECT_EQ(ParseHistory(R"({"event":"pass","loss":0.4})").train.size(), 1u);
}

TEST(RunHistory, IgnoresWhatIsNotAnEvent) {
  EXPECT_TRUE(ParseHistory("").empty());
  EXPECT_TRUE(ParseHistory("null\n[]\n{\"event\":5}\n{\"loss\":1e999}\nx").empty());
}

}  // namespace
}  // namespace cistern::report
