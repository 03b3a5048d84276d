#include "app/tune/search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace cistern::app {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

model::ModelKnobs Model() {
  model::ModelKnobs knobs;
  knobs.learning_rate = 0.001;
  knobs.dim = 8;
  knobs.depth = 2;
  return knobs;
}

Trial Curve(uint64_t number, const std::vector<double>& aucs) {
  Trial trial;
  trial.number = number;
  for (const double auc : aucs) trial.curve[trial.curve.size() + 1] = auc;
  return trial;
}

TEST(TuneSpace, SurroundsTheModel) {
  EXPECT_THAT(DefaultSpace(Model()).dims, ElementsAre(4u, 8u, 16u, 32u));
  EXPECT_THAT(DefaultSpace(Model()).depths, ElementsAre(1u, 2u, 3u, 4u));
  model::ModelKnobs shallow = Model();
  shallow.dim = 1;
  shallow.depth.reset();
  EXPECT_THAT(DefaultSpace(shallow).dims, ElementsAre(1u, 2u, 4u));
  EXPECT_TRUE(DefaultSpace(shallow).depths.empty());
}

TEST(KnobsOfTrial, BeginsWithTheModelAndDependsOnSeedAndTrialOnly) {
  const TuneSpace space = DefaultSpace(Model());
  EXPECT_EQ(KnobsOfTrial(Model(), space, 1, 1), Model());
  std::set<double> rates;
  for (uint64_t trial = 2; trial < 40; ++trial) {
    const model::ModelKnobs knobs = KnobsOfTrial(Model(), space, 1, trial);
    EXPECT_EQ(KnobsOfTrial(Model(), space, 1, trial), knobs);
    EXPECT_GE(knobs.learning_rate, 1e-4);
    EXPECT_LE(knobs.learning_rate, 1e-2);
    rates.insert(knobs.learning_rate);
  }
  EXPECT_GT(rates.size(), 30u);
  EXPECT_NE(KnobsOfTrial(Model(), space, 2, 2), KnobsOfTrial(Model(), space, 1, 2));
  TuneSpace given = space;
  given.learning_rates = {0.5};
  given.dims = {3};
  EXPECT_EQ(KnobsOfTrial(Model(), given, 1, 2).learning_rate, 0.5);
  EXPECT_EQ(KnobsOfTrial(Model(), given, 1, 2).dim, 3u);
}

TEST(IsBelowMedian, ComparesTheBestSoFarAfterAsManyEvaluations) {
  const std::vector<Trial> two = {Curve(1, {0.6, 0.7}), Curve(2, {0.5, 0.8})};
  EXPECT_FALSE(IsBelowMedian(Curve(9, {0.1}), two));  // too few to compare
  std::vector<Trial> others = two;
  others.push_back(Curve(3, {0.55, 0.54, 0.9}));
  // After one evaluation the others had 0.5, 0.55 and 0.6; after two 0.55, 0.7 and 0.8.
  EXPECT_TRUE(IsBelowMedian(Curve(9, {0.54}), others));
  EXPECT_FALSE(IsBelowMedian(Curve(9, {0.55}), others));
  EXPECT_TRUE(IsBelowMedian(Curve(9, {0.69, 0.6}), others));
  EXPECT_FALSE(IsBelowMedian(Curve(9, {0.71, 0.2}), others));
  // After three, trials that ended by themselves count with their best, a stopped one does not.
  EXPECT_TRUE(IsBelowMedian(Curve(9, {0.1, 0.2, 0.79}), others));
  others[0].end = TrialEnd::kStopped;
  EXPECT_FALSE(IsBelowMedian(Curve(9, {0.1, 0.2, 0.3}), others));
}

TEST(TuneLog, ContinuesASearchOfTheSameTask) {
  LocalFileSystem files;
  const std::string folder = testing::TempDir() + "/tune_log";
  ASSERT_TRUE(files.MakeFolders(folder).ok());
  const nlohmann::ordered_json task = {{"format", 1}, {"seed", 1}};
  auto log = TuneLog::Open(files, folder, task, false, true);
  ASSERT_TRUE(log.ok()) << log.status();
  Trial trial = Curve(3, {0.5, 0.75});
  trial.knobs = Model();
  trial.knobs.depth.reset();
  trial.auc = 0.75;
  ASSERT_TRUE(log->Add(trial).ok());

  EXPECT_THAT(OptionsOf(TuneLog::Open(files, folder, task, false, false).status()),
              ElementsAre("out", "resume", "overwrite"));
  const auto again = TuneLog::Open(files, folder, task, true, false);
  ASSERT_TRUE(again.ok()) << again.status();
  ASSERT_EQ(again->trials().size(), 1u);
  EXPECT_EQ(again->trials()[0].knobs, trial.knobs);
  EXPECT_EQ(again->trials()[0].curve, trial.curve);
  EXPECT_EQ(again->trials()[0].auc, trial.auc);
  EXPECT_FALSE(again->trials()[0].logloss.has_value());

  const auto other = TuneLog::Open(files, folder, {{"format", 1}, {"seed", 2}}, true, false);
  EXPECT_THAT(std::string(other.status().message()), HasSubstr("seed: 2 instead of 1"));
}

}  // namespace
}  // namespace cistern::app
