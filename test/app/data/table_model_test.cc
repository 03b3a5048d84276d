#include "app/data/table_model.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "test/app/data/text_fixture.h"
#include "worker/data/prepare/inspect.h"

namespace cistern::app {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

class TableModels : public TextFixture {
 protected:
  nlohmann::json Json(const std::string& name) const {
    std::ifstream file(In(name));
    return nlohmann::json::parse(file);
  }
  uint64_t Samples(const std::string& part) const {
    data::InspectOptions options;
    options.source = absl::StrCat(In("out"), "/data/", part, "/file_list.txt");
    const absl::StatusOr<data::NormSummary> summary = data::InspectNorm(options);
    EXPECT_TRUE(summary.ok()) << summary.status();
    return summary.ok() ? summary->samples : 0;
  }
};

TEST_F(TableModels, AreAModelFileAndARecipe) {
  InitOptions options;
  options.table = Write("a", 1000);
  options.how.model = "fm";
  options.out = In("out");
  const absl::StatusOr<InspectedTable> table = InitModel(options, {});
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->profile.rows, 1000u);
  EXPECT_EQ(Json("out/model.json")["layers"][0]["source"], In("out/data/train/file_list.txt"));
  EXPECT_EQ(Json("out/model.json")["layers"][0]["eval_source"], In("out/data/test/file_list.txt"));
  EXPECT_EQ(Json("out/recipe.json")["meaning"]["labels"][0]["column"], "click");
  const absl::Status refused = InitModel(options, {}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(refused));
  EXPECT_THAT(OptionsOf(refused), ElementsAre("overwrite", "out"));
  options.overwrite = true;
  EXPECT_TRUE(InitModel(options, {}).ok());
  options.out = In("latin\xe9");
  EXPECT_THAT(OptionsOf(InitModel(options, {}).status()), ElementsAre("out"));
}

TEST_F(TableModels, AreNotWrittenInTheFolderOfARun) {
  InitOptions init;
  init.table = Write("a", 300);
  init.out = In("run");
  init.overwrite = true;
  ASSERT_TRUE(InitModel(init, {}).ok());
  ASSERT_TRUE(InitModel(init, {}).ok());
  WriteText("run/metrics.jsonl", "");
  EXPECT_THAT(OptionsOf(InitModel(init, {}).status()), ElementsAre("out"));
}

TEST_F(TableModels, HoldOutATenthOrUseTheDataNamed) {
  std::vector<std::string> notes, amounts;
  uint64_t inspected = 0;
  TableCalls calls;
  calls.note = [&](const std::string& line) { notes.push_back(line); };
  calls.amount = [&](const Amount& amount) { amounts.push_back(amount.what); };
  calls.inspected = [&](const InspectedTable& table) { inspected = table.profile.rows; };
  TableOptions options;
  const std::string table = Write("a", 20000);
  const absl::StatusOr<TableModel> made = MakeTableModel(table, options, In("out"), calls);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->model, In("out/model.json"));
  EXPECT_EQ(inspected, 20000u);
  EXPECT_EQ(Samples("train") + Samples("test"), 20000u);
  EXPECT_NEAR(static_cast<double>(Samples("test")), 2000, 4 * 42.4);  // sqrt(20000 * 0.1 * 0.9)
  EXPECT_THAT(notes, Contains(HasSubstr("rows to train on")));
  EXPECT_THAT(notes, testing::Each(testing::Not(HasSubstr("--"))));
  EXPECT_THAT(amounts, Contains("converting train"));

  options.valid = Write("v", 300);
  options.test = Write("t", 200);
  options.negative_rate = 0.5;
  ASSERT_TRUE(MakeTableModel(table, options, In("out"), calls).ok());
  EXPECT_NEAR(static_cast<double>(Samples("train")), 12500, 4 * 61.3);  // sqrt(15000 / 4)
  EXPECT_EQ(Samples("test"), 300u);
  EXPECT_EQ(Samples(kFinalTest), 200u);
  EXPECT_EQ(Json("out/model.json")["cistern"]["negative_rate"], 0.5);
}

TEST_F(TableModels, WarnOfEvaluationRowsThatAreTrained) {
  TableOptions options;
  std::string rows = "click,user,city\n";
  for (int i = 0; i < 400; ++i) absl::StrAppend(&rows, i % 2, ",v", i % 40, ",w", i, "\n");
  const std::string table = WriteText("b.csv", rows);
  options.test = table;
  options.wishes.sparse = {"user"};
  const absl::StatusOr<TableModel> made = MakeTableModel(table, options, In("out"), {});
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_THAT(made->warnings, Contains(HasSubstr("training")));
}

TEST_F(TableModels, NeedRowsOfBothClasses) {
  const auto refused = [&](const std::string& table, const TableOptions& options = {}) {
    const absl::Status status = MakeTableModel(table, options, In("out"), {}).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    return status;
  };
  EXPECT_THAT(std::string(refused(Write("few", 99)).message()), HasSubstr("99 rows are too few"));
  // Three positive rows of 300, which are not among those held out.
  EXPECT_THAT(OptionsOf(refused(Write("rare", 300, "u", "", 100))), ElementsAre("valid"));
  TableOptions options;
  options.valid = WriteText("zero.csv", "click,user,price\n0,u1,1.5\n0,u2,2.5\n");
  const absl::Status zero = refused(Write("a", 400), options);
  EXPECT_THAT(std::string(zero.message()), HasSubstr("0 positive rows of 2"));
  EXPECT_THAT(OptionsOf(zero), ElementsAre());
  std::string rows = "click,user,price,w\n";  // the weights of all clicks are 0
  for (int i = 0; i < 400; ++i) {
    absl::StrAppend(&rows, i % 4 == 0 ? 1 : 0, ",u", i * 7 % 19, ",", i * 37 % 101, ".5,",
                    i % 4 == 0 ? 0 : i % 3 + 0.5, "\n");
  }
  options = {};
  options.wishes.weight = "w";
  EXPECT_THAT(OptionsOf(refused(WriteText("weights.csv", rows), options)), ElementsAre("weight"));
  rows = "click,user,price,w\n";  // one row has nearly all of the weight
  for (int i = 0; i < 400; ++i) {
    absl::StrAppend(&rows, i % 4 == 0 ? 1 : 0, ",u", i * 7 % 19, ",", i * 37 % 101, ".5,",
                    i < 2 ? "1e9" : "1", "\n");
  }
  const absl::Status heavy = refused(WriteText("heavy.csv", rows), options);
  EXPECT_THAT(OptionsOf(heavy), ElementsAre("weight"));
  EXPECT_THAT(std::string(heavy.message()), HasSubstr("rows count as"));
}

TEST_F(TableModels, EndWhenTheirCallerStops) {
  std::atomic<bool> stop{false};
  TableCalls calls;
  calls.stop = &stop;
  calls.inspected = [&](const InspectedTable&) { stop = true; };
  const absl::Status stopped = MakeTableModel(Write("a", 20000), {}, In("out"), calls).status();
  EXPECT_TRUE(absl::IsCancelled(stopped)) << stopped;
  EXPECT_FALSE(std::filesystem::exists(In("out/model.json")));
}

}  // namespace
}  // namespace cistern::app
