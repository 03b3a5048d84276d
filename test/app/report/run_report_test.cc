#include "app/report/run_report.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "test/app/train/run_fixture.h"
#include "test/support/temp_folder.h"

namespace cistern::app {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class RunReports : public RunFixture {};

TEST_F(RunReports, ShowTheRunsAndWhatTheirSlotsContribute) {
  for (const char* name : {"one", "two"}) {
    ASSERT_TRUE(RunOf(RunOptions(name, {"solver.num_epochs=1"})).ok());
  }
  std::vector<std::string> amounts;
  JobCalls calls;
  calls.amount = [&](const Amount& amount) {
    amounts.push_back(absl::StrCat(amount.what, " ", amount.done, "/", amount.total));
  };
  const absl::Status studied = StudyRun({folder_ + "/one", {}, 200, 1}, calls);
  ASSERT_TRUE(studied.ok()) << studied;
  EXPECT_THAT(amounts, ElementsAre("studying one 0/1", "studying one 1/1"));
  EXPECT_TRUE(nlohmann::json::accept(ReadBytes(folder_ + "/one/importance.json")));

  RunReportOptions options;
  options.runs = {folder_ + "/one", folder_ + "/two"};
  EXPECT_THAT(OptionsOf(WriteRunReport(options, {}).status()), ElementsAre("out"));
  options.out = folder_ + "/page.html";
  EXPECT_EQ(*WriteRunReport(options, {}), options.out);
  EXPECT_THAT(ReadBytes(options.out), testing::AllOf(HasSubstr(">one<"), HasSubstr(">two<")));
  options.runs.pop_back();
  options.out.clear();
  EXPECT_EQ(*WriteRunReport(options, {}), folder_ + "/one/report.html");
  options.out = "/dev/null";
  EXPECT_THAT(OptionsOf(WriteRunReport(options, {}).status()), ElementsAre("out"));
  options.runs = {folder_ + "/none"};
  options.out.clear();
  EXPECT_TRUE(absl::IsNotFound(WriteRunReport(options, {}).status()));
}

TEST_F(RunReports, NeedTheRecordOfTheRunForAStudy) {
  ASSERT_TRUE(RunOf(RunOptions("old", {"solver.num_epochs=1"})).ok());
  std::filesystem::remove(folder_ + "/old/run.json");
  EXPECT_THAT(OptionsOf(StudyRun({folder_ + "/old", {}, 200, 1}, {})), ElementsAre("importance"));
}

}  // namespace
}  // namespace cistern::app
