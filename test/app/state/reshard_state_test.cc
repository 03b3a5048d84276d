#include "app/state/reshard_state.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "app/state/state_diff.h"
#include "common/value/schema.h"
#include "test/app/state/saved_states.h"

namespace cistern::app {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ReshardStates : public SavedStates {
 protected:
  void SetUp() override {
    server::MakeSmallState(Disk(), folder_ / "a", 2, 3);
    options_.state = folder_ / "a";
    options_.out = folder_ / "b";
  }
  ReshardOptions options_;
};

TEST_F(ReshardStates, HaveTheSameRows) {
  options_.server_num = 3;
  options_.shard_num = 6;
  JobCalls calls;
  Amount last;
  calls.amount = [&](const Amount& amount) { last = amount; };
  const absl::StatusOr<ReshardResult> result = ReshardState(options_, calls);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->server_num, 3u);
  EXPECT_EQ(result->shard_num, 6u);
  EXPECT_FALSE(result->was_there);
  EXPECT_EQ(last.done, 3u);
  EXPECT_EQ(last.total, 3u);
  EXPECT_EQ(JsonOf(*result)["rows"], result->rows);
  const absl::StatusOr<DiffResult> diff = Diff({folder_ / "a", folder_ / "b"}, {});
  ASSERT_TRUE(diff.ok()) << diff.status();
  EXPECT_TRUE(diff->same());
  EXPECT_TRUE(ReshardState(options_, {})->was_there);
}

TEST_F(ReshardStates, ReplaceNoOtherState) {
  ASSERT_TRUE(ReshardState(options_, {}).ok());
  ReshardOptions other = options_;
  other.shard_num = 4;
  EXPECT_TRUE(absl::IsAlreadyExists(ReshardState(other, {}).status()));
  other.out = other.state + "/.";
  const absl::Status itself = ReshardState(other, {}).status();
  EXPECT_TRUE(absl::IsAlreadyExists(itself));
  EXPECT_THAT(itself.message(), HasSubstr("is the state to rewrite"));
  EXPECT_THAT(OptionsOf(itself), ElementsAre("out"));
}

TEST_F(ReshardStates, NeedNumbersThatFit) {
  ReshardOptions more_servers = options_;
  more_servers.server_num = 5;
  more_servers.shard_num = 4;
  EXPECT_TRUE(absl::IsInvalidArgument(ReshardState(more_servers, {}).status()));
  ReshardOptions too_many = options_;
  too_many.server_num = uint64_t{1} << 32;
  EXPECT_TRUE(absl::IsInvalidArgument(ReshardState(too_many, {}).status()));
  ReshardOptions no_state = options_;
  no_state.state = folder_ / "nothing";
  const absl::Status missing = ReshardState(no_state, {}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(missing)) << missing;
  EXPECT_NE(FixOf(missing), "");
}

TEST(ChangeThresholds, ChangeRulesOfCtrTablesAlone) {
  v1::Schema schema;
  v1::TableSpec* spec = schema.add_tables();
  spec->set_name("a.deep");
  spec->set_accessor(v1::TableSpec::CTR);
  EXPECT_THAT(ChangeThresholds({"deep.delete_threshold=0.5"}, &schema).message(),
              HasSubstr("no ctr table has this name; there are: a.deep"));
  EXPECT_THAT(ChangeThresholds({"a.deep.learning_rate=0.5"}, &schema).message(),
              HasSubstr("expected one of base_threshold, "));
  for (const char* bad : {"a.deep.delete_threshold", "delete_threshold=1",
                          "a.deep.x=", "a.deep.delete_threshold=much"}) {
    const absl::Status status = ChangeThresholds({bad}, &schema);
    EXPECT_THAT(status.message(), HasSubstr("write TABLE.NAME=NUMBER")) << bad;
    EXPECT_THAT(OptionsOf(status), ElementsAre("set"));
  }
}

}  // namespace
}  // namespace cistern::app
