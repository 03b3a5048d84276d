// What a model will need. The expected bytes follow from the formats: docs/formats.md.
#include "app/plan/plan.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "test/worker/model/config/config_parsing.h"

namespace cistern::app {
namespace {

using testing::HasSubstr;

PlanResult PlanOf(const model::ModelConfig& config, const PlanOptions& options = {}) {
  const absl::StatusOr<PlanResult> plan = Plan(config, options, {});
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.ok() ? *plan : PlanResult();
}

TEST(Plan, CountsTheRowsThatTheModelFileDeclares) {
  const PlanResult plan = PlanOf(model::ParseOrDie({"solver.gpu=[[0,1],[0,1]]"}));
  const PlannedTable& table = plan.tables[0];
  EXPECT_EQ(table.rows, 4 * 1000);  // max_vocabulary_size_per_gpu
  EXPECT_EQ(table.source, "max_vocabulary_size_per_gpu");
  EXPECT_EQ(table.table.value_bytes, 3 * 4 * 4);
  EXPECT_EQ(table.server_bytes(), 4000 * (8 + 48 + 10));
  EXPECT_EQ(table.commit_bytes(), 4000 * (8 + 1 + 48));
  EXPECT_EQ(table.save_bytes(), 4000 * (4 + 8 + 48));
  // Two training passes and the evaluation pass.
  EXPECT_EQ(plan.worker.passes, 3 * (uint64_t{1024} << 20));
  EXPECT_EQ(JsonOf(plan)["tables"][0]["rows_from"], "max_vocabulary_size_per_gpu");
}

TEST(Plan, SlotSizesOverrideTheVocabularySize) {
  const std::string slots = "layers.deep.sparse_embedding_hparam.slot_size_array=[30,12]";
  EXPECT_EQ(PlanOf(model::ParseOrDie({slots})).tables[0].rows, 42);
}

TEST(Plan, RowsThatAreGivenOverrideTheModelFile) {
  PlanOptions options;
  options.rows = {{"deep", 2000000000}};
  options.servers = 4;
  const PlanResult plan = PlanOf(model::ParseOrDie(), options);
  EXPECT_EQ(plan.tables[0].rows, 2000000000);
  EXPECT_TRUE(plan.tables[0].given);
  EXPECT_NEAR(JsonOf(plan)["bytes_per_server"].get<double>(), 2e9 * 66 / 4, 1e6);
  EXPECT_EQ(JsonOf(plan)["tables"][0]["rows_from"], "given");
}

// As measured: docs/measurements/2026-11-26-rows-beyond-memory.md.
TEST(Plan, DividesAMemoryLimit) {
  PlanOptions options;
  options.rows = {{"deep", 100000000}};
  options.servers = 2;
  options.memory_limit_mb = 1024;
  const model::ModelConfig config =
      model::ParseOrDie({"cistern.pass_memory_mb=64", "cistern.shuffle=true"});
  const PlannedLimit limit = *PlanOf(config, options).memory_limit;
  // 71 rows of 57 bytes fill a block of 4 KiB.
  EXPECT_NEAR(static_cast<double>(limit.finding_rows), 5e7 * (24.0 / 71 + 2) * 1.28, 100);
  // A pass has as many keys as its memory holds values of 48 bytes and 25 more; half go to a
  // server.
  EXPECT_NEAR(static_cast<double>(limit.pushes), 64.0 * 1048576 / (48 + 25) * (48 + 9) / 2, 100);
  EXPECT_EQ(limit.rows, (uint64_t{1} << 30) - limit.finding_rows - limit.pushes);
  EXPECT_NEAR(limit.share_in_memory, static_cast<double>(limit.rows) / (5e7 * (66 + 4)), 1e-3);
  EXPECT_EQ(limit.process, (uint64_t{1136} << 20) + limit.finding_rows);
  EXPECT_EQ(JsonOf(PlanOf(config, options))["memory_limit"]["process_bytes"], limit.process);
  EXPECT_TRUE(PlanOf(config, options).warnings.empty());
}

TEST(Plan, ALimitBelowWhatFindsRowsIsNoted) {
  PlanOptions options;
  options.rows = {{"deep", 100000000}};
  options.memory_limit_mb = 200;
  const PlanResult plan = PlanOf(model::ParseOrDie(), options);
  EXPECT_EQ(plan.memory_limit->rows, 0u);
  ASSERT_EQ(plan.warnings.size(), 1u);
  EXPECT_THAT(plan.warnings[0], HasSubstr("leaves nothing for rows"));
  // With room for all, all are in memory.
  options.memory_limit_mb = 1 << 20;
  EXPECT_EQ(PlanOf(model::ParseOrDie(), options).memory_limit->share_in_memory, 1);
  options.memory_limit_mb = UINT64_MAX;
  EXPECT_EQ(OptionsOf(Plan(model::ParseOrDie(), options, {}).status()),
            std::vector<std::string>{"memory_limit_mb"});
}

TEST(Plan, RefusesAnUnknownTableAndNoServers) {
  PlanOptions options;
  options.rows = {{"dep", 5}};
  const absl::Status unknown = Plan(model::ParseOrDie(), options, {}).status();
  EXPECT_EQ(unknown.message(), "the model has no table 'dep'; did you mean 'deep'?");
  EXPECT_EQ(OptionsOf(unknown), std::vector<std::string>{"rows"});
  options = {};
  options.servers = 0;
  EXPECT_EQ(Plan(model::ParseOrDie(), options, {}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(Plan, SaysWhatItAssumesOfATableOfUnknownSize) {
  const std::string text = model::Replaced("\"max_vocabulary_size_per_gpu\": 1000, ", "");
  const PlanResult plan = PlanOf(model::ParseOrDie({}, text));
  EXPECT_EQ(plan.tables[0].rows, 1000000);
  EXPECT_EQ(plan.tables[0].source, "a guess");
  EXPECT_THAT(plan.tables[0].assumption, HasSubstr("table 'deep' has 1000000 rows"));
  EXPECT_THAT(plan.tables[0].assumption, HasSubstr("cannot be read"));
}

}  // namespace
}  // namespace cistern::app
