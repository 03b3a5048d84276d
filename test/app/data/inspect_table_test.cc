#include "app/data/inspect_table.h"

#include <gmock/gmock.h>

#include "test/app/data/text_fixture.h"

namespace cistern::app {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class InspectTables : public TextFixture {
 protected:
  std::string Heads(int buys_of_clicks) const {
    std::string text = "click,buy,user\n";
    for (int i = 0; i < 1000; ++i) {
      const int click = i % 2;
      const int buy = buys_of_clicks > 0 ? click && i / 2 % buys_of_clicks == 0 : !click;
      absl::StrAppend(&text, click, ",", buy, ",u", i % 31, "\n");
    }
    return WriteText("heads.csv", text);
  }
};

TEST_F(InspectTables, FindsRolesAndTheKindOfModel) {
  std::vector<uint64_t> rows;
  JobCalls calls;
  calls.amount = [&](const Amount& amount) { rows.push_back(amount.done); };
  const absl::StatusOr<InspectedTable> table = InspectTable(Write("a", 20000), {}, calls);
  ASSERT_TRUE(table.ok()) << table.status();
  const nlohmann::ordered_json json = JsonOf(*table);
  EXPECT_EQ(json["rows"], 20000);
  EXPECT_EQ(json["label"], "click");
  EXPECT_EQ(json["delimiter"], ",");
  EXPECT_EQ(json["columns"][1]["column"], "user");
  EXPECT_EQ(json["columns"][1]["role"], "slot");
  EXPECT_EQ(json["columns"][1]["distinct"], 19);
  EXPECT_FALSE(rows.empty());
  // One row in four is positive.
  EXPECT_EQ(RowsToTrain(*table, {}).rows, 20000u);
  EXPECT_EQ(RowsToTrain(*table, {}).rarer, 5000u);
  TableOptions half;
  half.negative_rate = 0.5;  // 5000 positive rows, half of 15000 negative ones
  EXPECT_EQ(RowsToTrain(*table, half).rows, 12500u);
  EXPECT_EQ(RowsToTrain(*table, half).rarer, 5000u);
  EXPECT_EQ(KindFor(*table, {}), model::ModelKind::kDeepFm);
  TableOptions named;
  named.model = "dcn";
  EXPECT_EQ(KindFor(*table, named), model::ModelKind::kDcn);
  EXPECT_EQ(KindFor(*InspectTable(Write("b", 1000), {}, {}), {}), model::ModelKind::kLr);
}

TEST_F(InspectTables, RefusesWhatDoesNotFit) {
  const std::string table = Write("a", 400);
  const auto refused = [&](const std::string& path, const TableOptions& options) {
    const absl::Status status = InspectTable(path, options, {}).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    return OptionsOf(status);
  };
  EXPECT_THAT(refused(In("missing.csv"), {}), ElementsAre());
  TableOptions options;
  options.model = "deepfmm";
  EXPECT_THAT(refused(table, options), ElementsAre("model"));
  options.model = "mmoe";
  EXPECT_THAT(refused(table, options), ElementsAre("label", "model"));
  options.model = "auto";
  options.columns = {"C1..C"};
  EXPECT_THAT(refused(table, options), ElementsAre("columns"));
  options = {};
  options.negative_rate = 1.5;
  EXPECT_THAT(refused(table, options), ElementsAre("negative_rate"));
  const std::string heads = Heads(3);
  options.wishes.label = "click,buy";
  options.negative_rate = 0.5;
  EXPECT_THAT(refused(heads, options), ElementsAre("negative_rate", "label"));
  options.negative_rate = 0;
  EXPECT_EQ(KindFor(*InspectTable(heads, options, {}), options), model::ModelKind::kMmoe);
  options.model = "deepfm";
  EXPECT_THAT(refused(heads, options), ElementsAre("model", "label"));
  options.model = "esmm";
  EXPECT_TRUE(InspectTable(heads, options, {}).ok());
  EXPECT_THAT(refused(Heads(0), options), ElementsAre("label", "model=mmoe"));
}

TEST_F(InspectTables, EndsWhenItsCallerStops) {
  const std::atomic<bool> stop{true};
  JobCalls calls;
  calls.stop = &stop;
  EXPECT_TRUE(absl::IsCancelled(InspectTable(Write("a", 20000), {}, calls).status()));
}

TEST_F(InspectTables, NotesTextThatIsNotUtf8) {
  std::string text = "click,name\n";
  for (int i = 0; i < 300; ++i) absl::StrAppend(&text, i % 2, ",caf\xe9", i % 5, "\n");
  std::vector<std::string> notes;
  JobCalls calls;
  calls.note = [&](const std::string& line) { notes.push_back(line); };
  ASSERT_TRUE(InspectTable(WriteText("latin.csv", text), {}, calls).ok());
  EXPECT_THAT(notes, ElementsAre(HasSubstr("column 'name' holds text that is not UTF-8")));
}

}  // namespace
}  // namespace cistern::app
