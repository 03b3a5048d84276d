// Runs that are killed, or lose a server or the power anywhere, and go on: what comes out is the
// same, bit for bit, as of a run that nothing happened to.
#include <gmock/gmock.h>

#include "test/train/resume_fixture.h"

namespace cistern {
namespace {

TEST_F(Resume, GoesOnFromAnywhere) {
  ExpectGoesOnFromAnywhere(CutConfig({"solver.num_epochs=2"}), 7);
}

TEST_F(Resume, GoesOnFromAnywhereShuffledAroundTheData) {
  ExpectGoesOnFromAnywhere(CutConfig({"solver.num_epochs=0", "solver.max_iter=37",
                                      "cistern.shuffle=true", "solver.eval_interval=7"}),
                           11);
}

TEST_F(Resume, GoesOnFromAnywhereWithFewerCommits) {
  // An epoch is a pass here, and snapshots would be commits.
  ExpectGoesOnFromAnywhere(CutConfig({"solver.num_epochs=8", "solver.snapshot=0",
                                      "cistern.commit_every=3", "cistern.shuffle=true"}),
                           7);
}

TEST_F(Resume, GoesOnFromAnywhereToTheBestEpoch) {
  const ModelConfig config = CutConfig(kBestOfSeven);
  const Outcome outcome = Undisturbed(config);
  EXPECT_EQ(outcome.iterations, 7u * 16);
  EXPECT_EQ(outcome.pass, 5u);
  ExpectGoesOnFromAnywhere(config, 3);
}

// Servers and worker lose their power at once. (Lines of metrics.jsonl that were written just
// before may be gone with it.)
TEST_F(Resume, GoesOnAfterALossOfPower) {
  using Loss = MemoryFileSystem::Loss;
  const ModelConfig config = CutConfig(kBestOfSeven);
  const Outcome expected = Undisturbed(config);
  Scene whole(folder_ + "/run");
  auto client = whole.Client();
  ASSERT_TRUE(Train(config, *client, whole.Options()).ok());
  const size_t operations = whole.disk->operation_num();
  for (size_t prefix = 5; prefix < operations; prefix += 29) {
    const Loss loss = prefix % 2 == 0 ? Loss::kOrdered : Loss::kWeak;
    SCOPED_TRACE(absl::StrCat("after ", prefix, " operations, ", loss == Loss::kWeak));
    Scene scene(folder_ + "/run", whole.disk->Crash(prefix, loss, prefix));
    auto next = scene.Client();
    const auto summary = Train(config, *next, scene.Options(/*resume=*/true));
    ASSERT_TRUE(summary.ok()) << summary.status();
    Outcome outcome = OutcomeOf(config, *next, scene, *summary);
    outcome.lines = expected.lines;
    ASSERT_EQ(outcome, expected);
  }
}

}  // namespace
}  // namespace cistern
