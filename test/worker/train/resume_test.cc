// Runs that are killed, or lose a server or power at any point, and resume: their results are
// bitwise identical to those of an undisturbed run.
#include <gmock/gmock.h>

#include "test/worker/train/resume_fixture.h"

namespace cistern {
namespace {

TEST_F(Resume, WorksFromAnyPoint) {
  ExpectGoesOnFromAnywhere(CutConfig({"solver.num_epochs=2"}), 13);
}

TEST_F(Resume, WorksFromAnyPointOfShuffledEndlessData) {
  ExpectGoesOnFromAnywhere(CutConfig({"solver.num_epochs=0", "solver.max_iter=37",
                                      "cistern.shuffle=true", "solver.eval_interval=7"}),
                           23);
}

TEST_F(Resume, WorksFromAnyPointWithFewerCommits) {
  // Here an epoch is one pass. Snapshots are off, because they would force commits.
  ExpectGoesOnFromAnywhere(CutConfig({"solver.num_epochs=8", "solver.snapshot=0",
                                      "cistern.commit_every=3", "cistern.shuffle=true"}),
                           13);
}

TEST_F(Resume, WorksFromAnyPointToTheBestEpoch) {
  const model::ModelConfig config = CutConfig(kBestOfSeven);
  const Outcome outcome = Undisturbed(config);
  EXPECT_EQ(outcome.iterations, 7u * 16);
  EXPECT_EQ(outcome.pass, 5u);
  ExpectGoesOnFromAnywhere(config, 7);
}

// Rows have deferred updates when the run is interrupted, and the learning rate changes; the best
// epoch is saved with its deferred updates applied.
TEST_F(Resume, WorksFromAnyPointWithGlobalUpdates) {
  std::vector<std::string> overrides = kBestOfSeven;
  overrides.push_back("optimizer.update_type=Global");
  overrides.push_back("cistern.plateau_factor=0.5");
  ExpectGoesOnFromAnywhere(CutConfig(overrides), 29);
}

TEST_F(Resume, WorksFromAnyPointWithLazyGlobalUpdates) {
  ExpectGoesOnFromAnywhere(CutConfig({"solver.num_epochs=2", "optimizer.update_type=LazyGlobal"}),
                           17);
}

// Every pass brings new keys and lets others go, of which some come back two passes later, when
// their pull is ahead of the commit that removes them.
TEST_F(Resume, WorksFromAnyPointWithBoundedTables) {
  WriteSamples(folder_ + "/train.norm", 1000, 1000, 1);
  const std::string deep = "cistern.embeddings.deep.";
  for (const std::vector<std::string>& bounds : {std::vector<std::string>{"max_rows=700"},
                                                 {"max_rows=400", "evict_by=norm"},
                                                 {"max_rows=400", "evict_by=count"},
                                                 {"admit_after=3"},
                                                 {"max_rows=500", "admit_after=2"},
                                                 {"expire_passes=1"},
                                                 {"expire_days=1"},
                                                 {"expire_passes=2", "max_rows=900"}}) {
    SCOPED_TRACE(bounds[0]);
    std::vector<std::string> overrides = {"solver.num_epochs=2"};
    for (const std::string& bound : bounds) overrides.push_back(deep + bound);
    ExpectGoesOnFromAnywhere(CutConfig(overrides), resumed_ == 0 ? 19 : 53);
  }
}

// Server 0 grants the first claims and then restarts without tables; server 1 grants none of them.
TEST_F(Resume, WorksAfterAnInterruptedFirstClaim) {
  const model::ModelConfig config = CutConfig();
  const Outcome expected = Undisturbed(config);
  Scene scene(folder_ + "/cut", DiskWithFiles());
  auto client = scene.Client();
  std::atomic<int> refused{0};
  scene.fleet->address(1).before = [&](const char* method) -> absl::Status {
    if (absl::string_view(method) != "ClaimEpoch" || refused == 4) return absl::OkStatus();
    if (++refused == 2) CISTERN_RETURN_IF_ERROR(scene.fleet->Restart(0));
    return absl::UnavailableError("cut off");
  };
  const auto summary = Train(config, *client, scene.Options());
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(refused, 4);
  EXPECT_EQ(OutcomeOf(config, *client, scene, *summary), expected);
}

// Servers and worker lose power at the same time. (The last lines of metrics.jsonl may be lost.)
TEST_F(Resume, WorksAfterALossOfPower) {
  using Loss = MemoryFileSystem::Loss;
  const model::ModelConfig config = CutConfig(kBestOfSeven);
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

// The rows of the model files are a commit of their own, made at most once.
TEST_F(Resume, ImportsModelFilesAtMostOnce) {
  Scene source(folder_ + "/source");
  auto client = source.Client();
  const std::vector<std::string> by_iterations = {"solver.num_epochs=0", "solver.max_iter=10"};
  ASSERT_TRUE(Train(CutConfig(by_iterations), *client, source.Options()).ok());
  for (const char* name : {"a_dense_5.model", "a_dense_5.model.ntp.json", "a0_sparse_5.model"}) {
    files_[absl::StrCat("/given/", name)] =
        ReadWhole(*source.disk, absl::StrCat(folder_, "/files/", name), 1 << 20).value();
  }
  std::vector<std::string> values = by_iterations;
  values.push_back("solver.dense_model_file=/given/a_dense_5.model");
  values.push_back("solver.sparse_model_file=/given/a0_sparse_5.model");
  const Outcome fresh = Undisturbed(CutConfig(by_iterations));
  EXPECT_NE(Undisturbed(CutConfig(values)).digests, fresh.digests);
  ExpectGoesOnFromAnywhere(CutConfig(values), 7);
}

// Passes take over rows that the pass before has rounded: those of a resumed run are pulled.
TEST_F(Resume, WorksFromAnyPointWithRowsOfSixteenBits) {
  const std::string deep = "cistern.embeddings.deep.", packed = deep + "row_type=bfloat16";
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{"optimizer.update_type=Local"},
        {deep + "max_rows=300", deep + "evict_by=norm"},
        {deep + "accessor=ctr", deep + "embedx_threshold=1"}}) {
    SCOPED_TRACE(more[0]);
    std::vector<std::string> overrides = {"solver.num_epochs=2", packed};
    overrides.insert(overrides.end(), more.begin(), more.end());
    ExpectGoesOnFromAnywhere(CutConfig(overrides), resumed_ == 0 ? 19 : 53);
  }
}

}  // namespace
}  // namespace cistern
