#include "worker/report/page.h"

#include <gtest/gtest.h>

#include <cmath>

#include "common/io/new_file.h"
#include "test/support/memory_file_system.h"
#include "test/support/temp_folder.h"

namespace cistern::report {
namespace {

constexpr char kLines[] =
    R"({"event":"train","iter":50,"samples":1000,"loss":0.5,"lr":0.01,"seconds":1})"
    "\n"
    R"({"event":"eval","iter":50,"samples":1000,"epoch":1.0,"auc":0.75,"logloss":0.4,"seconds":2})"
    "\n"
    R"({"event":"warning","iter":50,"seconds":2,"message":"<script>alert(1)</script>"})"
    "\n"
    R"({"event":"final","iter":50,"samples":1000,"auc":0.75,"logloss":0.4,)"
    R"("seconds":3,"phases":{"train":2,"read":1}})"
    "\n";

class Page : public testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text) {
    auto file = NewFile::Create(files_, path);
    ASSERT_TRUE(file.ok()) << file.status();
    ASSERT_TRUE((*file)->Append(text).ok());
    ASSERT_TRUE((*file)->Close().ok());
  }
  // A run with all files.
  void WriteRun(const std::string& folder, const std::string& batchsize) {
    Write(folder + "/metrics.jsonl", kLines);
    RunRecord record;
    record.model = "deepfm.json";
    record.values = {{"solver.batchsize", batchsize}, {"solver.seed", "1"}};
    Write(folder + "/run.json", FormatRunRecord(record));
    ScoreCollector scores;
    for (int i = 0; i < 100; ++i) {
      const double margin = 0.05 * (i - 50);
      scores.Add(i % 3 == 0 ? 1.0f : 0.0f, static_cast<float>(1 / (1 + std::exp(-margin))), margin);
    }
    Write(folder + "/evaluation.json", FormatScoreDetail(scores.Detail()));
    ModelStudy study;
    study.samples = 100;
    study.slots = {{"data1", 0, 5, 1, 100, 2, 0, 1, {0.25, 0.125}, {{42, 100, 33, 40, 0.75}}}};
    Write(folder + "/importance.json", FormatModelStudy(study));
  }
  std::string Report(const std::vector<std::string>& folders) {
    const absl::Status written = WriteReport(files_, folders, folder_.path() + "/page.html");
    EXPECT_TRUE(written.ok()) << written;
    return ReadWhole(files_, folder_.path() + "/page.html", 1 << 24).value_or("");
  }

  const TempFolder folder_;
  LocalFileSystem files_;
};

TEST_F(Page, ShowsWhatKeysAre) {
  const std::string run = folder_ / "a", page = folder_ / "page.html";
  WriteRun(run, "100");
  EXPECT_NE(Report({run}).find("<td>key 42</td>"), std::string::npos);
  EXPECT_EQ(Report({run}).find("To see the texts"),
            std::string::npos);  // there is no recipe
  Write(run + "/recipe.json", R"({"meaning":{"slots":[{"column":"city"}],"dense":[]}})");
  EXPECT_NE(Report({run}).find("To see the texts"), std::string::npos);
  const auto texts = [](const RunView&) -> absl::StatusOr<KeyTexts> {
    return KeyTexts{{{"city", 42}, "<b>" + std::string(100, 'x')}, {{"age", 42}, "no"}};
  };
  ASSERT_TRUE(WriteReport(files_, {run}, page, texts).ok());
  const std::string shown = ReadWhole(files_, page, 1 << 24).value();
  EXPECT_NE(shown.find("<td>&lt;b&gt;" + std::string(57, 'x') + "...</td>"), std::string::npos);
  EXPECT_EQ(shown.find("key 42"), std::string::npos);
  EXPECT_EQ(shown.find("To see the texts"), std::string::npos);
}

TEST_F(Page, NeedsNothingElseAndRunsNothing) {
  WriteRun(folder_ / "a", "4096");
  const std::string page = Report({folder_ / "a"});
  for (const char* absent : {"<script", "http:", "https:", "@import", "url(", "src=", "<link"}) {
    EXPECT_EQ(page.find(absent), std::string::npos) << absent;
  }
  EXPECT_NE(page.find("&lt;script&gt;alert(1)"), std::string::npos);  // a warning, as text
}

TEST_F(Page, ShowsEverySectionOfACompleteRun) {
  WriteRun(folder_ / "a", "4096");
  const std::string page = Report({folder_ / "a"});
  for (const char* part : {"id=\"curves\"", "id=\"scores\"", "id=\"slots\"", "id=\"time\"",
                           "id=\"configuration\"", "data1[0]", "0.750000", "waiting for data"}) {
    EXPECT_NE(page.find(part), std::string::npos) << part;
  }
  EXPECT_EQ(page.find("nan"), std::string::npos);
}

TEST_F(Page, ShowsARunThatHasOnlyBegun) {
  Write(folder_ / "b/metrics.jsonl", "");
  const std::string page = Report({folder_ / "b"});
  EXPECT_NE(page.find("<h1>b</h1>"), std::string::npos);
  EXPECT_EQ(page.find("id=\"curves\""), std::string::npos);
}

TEST_F(Page, MarksSettingsThatDiffer) {
  WriteRun(folder_ / "a", "4096");
  WriteRun(folder_ / "b", "8192");
  const std::string page = Report({folder_ / "a", folder_ / "b"});
  const size_t differs = page.find("<tr class=\"differs\"");
  ASSERT_NE(differs, std::string::npos);
  EXPECT_EQ(page.find("solver.batchsize"), page.find("solver.", differs));
  EXPECT_EQ(page.find("<tr class=\"differs\"", differs + 1), std::string::npos);
}

TEST_F(Page, TellsRunsOfOneNameApart) {
  WriteRun(folder_ / "x/run", "1");
  WriteRun(folder_ / "y/run", "1");
  const std::string page = Report({folder_ / "x/run", folder_ / "y/run"});
  EXPECT_NE(page.find("x/run</th>"), std::string::npos);
}

TEST_F(Page, NamesTheFileThatIsDamaged) {
  WriteRun(folder_ / "a", "1");
  Write(folder_ / "a/run.json", "{\"format\": 7}");
  const absl::Status written = WriteReport(files_, {folder_ / "a"}, folder_ / "page.html");
  EXPECT_TRUE(absl::IsDataLoss(written));
  EXPECT_NE(std::string(written.message()).find("a/run.json"), std::string::npos);
  EXPECT_TRUE(absl::IsNotFound(WriteReport(files_, {folder_ / "none"}, folder_ / "page.html")));
  EXPECT_TRUE(absl::IsInvalidArgument(WriteReport(files_, {}, folder_ / "page.html")));
}

}  // namespace
}  // namespace cistern::report
