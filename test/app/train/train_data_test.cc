#include "app/train/train_data.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "test/app/data/text_fixture.h"

namespace cistern::app {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

class TrainDataTest : public TextFixture {
 protected:
  TrainRunOptions Options(const std::string& model, const std::string& run = "run") const {
    TrainRunOptions options;
    options.model.config = model;
    options.model.set = {"solver.num_epochs=1"};
    options.model.threads = 2;
    options.out = run.empty() ? "" : In(run);
    return options;
  }
  absl::StatusOr<TrainSummary> Train(const TrainData& data, TrainRunOptions options) const {
    CISTERN_RETURN_IF_ERROR(ApplyTrainData(data, &options, {}));
    CISTERN_ASSIGN_OR_RETURN(model::ModelConfig config, ReadModelConfig(options.model));
    CISTERN_ASSIGN_OR_RETURN(const TrainRunResult run, TrainRun(std::move(config), options, {}));
    return run.summary;
  }
  static std::vector<std::string> Refused(const TrainData& data, TrainRunOptions options) {
    const absl::Status status = ApplyTrainData(data, &options, {});
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_NE(FixOf(status), "") << status;
    return OptionsOf(status);
  }
};

TEST_F(TrainDataTest, ChecksOverridesBeforeATableIsConverted) {
  TrainRunOptions options = Options(Write("a", 600));
  options.model.set = {"solver.batchsiz=64"};
  const absl::Status status = ApplyTrainData({}, &options, {});
  EXPECT_THAT(status.message(),
              HasSubstr("solver.batchsiz: unknown key; did you mean 'batchsize'"));
  EXPECT_THAT(OptionsOf(status), ElementsAre("set"));
  EXPECT_FALSE(std::filesystem::exists(In("run/data")));
}

TEST_F(TrainDataTest, TrainsATableAndContinuesWithTheNextDay) {
  TrainData data;
  data.table.model = "lr";
  const absl::StatusOr<TrainSummary> first = Train(data, Options(Write("a", 600)));
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_GT(first->samples, 480u);  // nine tenths of 600 are 540; 8 deviations
  EXPECT_LT(first->samples, 600u);
  EXPECT_TRUE(first->score.auc.has_value());

  TrainData more;
  more.more = {Write("day2", 400, "w", ",new")};
  TrainRunOptions options = Options(In("run"), "");
  EXPECT_THAT(Refused(more, options), ElementsAre("more", "resume", "out"));
  options.resume = true;
  std::vector<std::string> notes;
  OtherColumns others;
  TableCalls calls;
  calls.note = [&](const std::string& line) { notes.push_back(line); };
  calls.other_columns = [&](const OtherColumns& found) { others = found; };
  ASSERT_EQ(ApplyTrainData(more, &options, calls), absl::OkStatus());
  EXPECT_EQ(options.out, In("run"));
  EXPECT_TRUE(options.more);
  EXPECT_EQ(others.file, more.more.front());
  EXPECT_THAT(others.columns, ElementsAre("new"));
  EXPECT_EQ(others.earlier.size(), 1u);  // the table of the run
  EXPECT_THAT(notes, Contains(HasSubstr("new values that get keys of their own: user 19")));
  EXPECT_THAT(options.model.set, Contains(absl::StrCat("layers.0.source=\"", In("run"),
                                                       "/more/day2/file_list.txt\"")));
  const absl::StatusOr<model::ModelConfig> config = ReadModelConfig(options.model);
  ASSERT_TRUE(config.ok()) << config.status();
  const absl::StatusOr<TrainRunResult> second = TrainRun(*config, options, {});
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_GT(second->summary.samples, 300u);
}

TEST_F(TrainDataTest, RefusesWhatExcludesATable) {
  const std::string table = Write("a", 400);
  TrainData data;
  TrainRunOptions options = Options(table);
  options.resume = true;
  EXPECT_THAT(Refused(data, options), ElementsAre("resume", "more"));
  EXPECT_THAT(Refused(data, Options(table, "")), ElementsAre("out"));
  options = Options(table);
  options.worker.world_size = 2;
  EXPECT_THAT(Refused(data, options), ElementsAre());
  data.stream.source = In("clicks");
  EXPECT_THAT(Refused(data, Options(table)), ElementsAre("stream", "out"));
  data.more = {"b.csv"};
  const std::string model = WriteText("model.json", "{}");
  EXPECT_THAT(Refused(data, Options(model)), ElementsAre("stream", "more"));
  data = {};
  data.table.wishes.label = "click";
  EXPECT_THAT(Refused(data, Options(model)), ElementsAre("label"));
  data.tables = {model};
  EXPECT_THAT(Refused(data, Options(table)), ElementsAre());
  EXPECT_FALSE(std::filesystem::exists(In("run")));
}

}  // namespace
}  // namespace cistern::app
