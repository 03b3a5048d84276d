#include <gmock/gmock.h>

#include "cli/command/dry_run.h"
#include "cli/command/plan_command.h"
#include "test/worker/model/config/config_parsing.h"

namespace cistern {
namespace {

using testing::HasSubstr;

Report PlanOf(const ModelConfig& config, const PlanFlags& flags = {}) {
  const absl::StatusOr<Report> report = Plan(config, flags);
  EXPECT_TRUE(report.ok()) << report.status();
  return report.ok() ? *report : Report();
}

TEST(Plan, CountsTheRowsThatTheModelFileDeclares) {
  const ModelConfig config = ParseOrDie({"solver.gpu=[[0,1],[0,1]]"});
  const Report report = PlanOf(config);
  const auto& table = report.json["tables"][0];
  EXPECT_EQ(table["rows"], 4 * 1000);  // max_vocabulary_size_per_gpu
  EXPECT_EQ(table["rows_from"], "max_vocabulary_size_per_gpu");
  EXPECT_EQ(table["value_bytes"], 3 * 4 * 4);
  EXPECT_EQ(table["server_bytes"], 4000 * (8 + 48 + 10));
  EXPECT_EQ(table["commit_bytes"], 4000 * (8 + 1 + 48));
  EXPECT_EQ(table["save_bytes"], 4000 * (4 + 8 + 48));
  // Two training passes and the evaluation pass.
  EXPECT_EQ(report.json["worker_pass_bytes"], 3 * (uint64_t{1024} << 20));
}

TEST(Plan, SlotSizesOverrideTheVocabularySize) {
  const std::string slots = "layers.deep.sparse_embedding_hparam.slot_size_array=[30,12]";
  EXPECT_EQ(PlanOf(ParseOrDie({slots})).json["tables"][0]["rows"], 42);
}

TEST(Plan, RowsFlagOverridesTheModelFile) {
  PlanFlags flags;
  flags.rows = {"deep=2e9"};
  flags.servers = 4;
  const Report report = PlanOf(ParseOrDie(), flags);
  EXPECT_EQ(report.json["tables"][0]["rows"], 2000000000);
  EXPECT_NEAR(report.json["bytes_per_server"].get<double>(), 2e9 * 66 / 4, 1e6);
  EXPECT_THAT(report.text, HasSubstr("on each of 4"));
  flags.rows = {"dep=5"};
  EXPECT_THAT(std::string(Plan(ParseOrDie(), flags).status().message()),
              HasSubstr("the model has no table 'dep'; did you mean 'deep'?"));
  flags.rows = {"deep=many"};
  EXPECT_THAT(std::string(Plan(ParseOrDie(), flags).status().message()),
              HasSubstr("expected TABLE=COUNT"));
}

TEST(Plan, SaysWhatItAssumesOfATableOfUnknownSize) {
  const std::string text = Replaced("\"max_vocabulary_size_per_gpu\": 1000, ", "");
  const Report report = PlanOf(ParseOrDie({}, text));
  EXPECT_EQ(report.json["tables"][0]["rows"], 1000000);
  EXPECT_EQ(report.json["tables"][0]["rows_from"], "a guess");
  EXPECT_THAT(report.text, HasSubstr("assumed  table 'deep' has 1000000 rows"));
  EXPECT_THAT(report.text, HasSubstr("cannot be read"));
  EXPECT_THAT(report.text, HasSubstr("--rows deep=COUNT"));
}

TEST(DryRun, DescribesTheGraphWithoutData) {
  const absl::StatusOr<Report> report = DryRun(ParseOrDie());
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->json["layers"].size(), 7u);
  EXPECT_EQ(report->json["layers"][3]["shape"][0], "[b, 5]");
  EXPECT_EQ(report->json["dense_parameters"], 11 * 5 + 5 + 5 + 1);
  EXPECT_EQ(report->json["tables"][0]["server_bytes_per_row"], 8 + 48 + 10);
  EXPECT_THAT(report->text, HasSubstr("fc1       InnerProduct            concat1"));
}

}  // namespace
}  // namespace cistern
