#include "worker/train/metrics_log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "test/support/fault_file_system.h"
#include "test/support/memory_file_system.h"
#include "test/support/temp_folder.h"
#include "worker/report/score_detail.h"

namespace cistern {
namespace {

TEST(MetricsLog, WritesOneJsonObjectPerLineAndForwardsEvents) {
  const TempFolder above;
  const std::string folder = above / "metrics/deep";
  int seen = 0;
  auto log = MetricsLog::Create(
      Disk(), folder, [&](const Progress& p) { seen += p.event == report::RunEvent::kEval; });
  ASSERT_TRUE(log.ok()) << log.status();
  EXPECT_FALSE((*log)->StartAt({}).value());
  Progress train;
  train.event = report::RunEvent::kTrain;
  train.iter = 10;
  train.samples = 40960;
  train.loss = 0.5;
  (*log)->Write(train);
  Progress eval;
  eval.event = report::RunEvent::kEval;
  eval.auc = 0.75;
  eval.logloss = 0.25;
  eval.metrics = {
      {"ne", 0.5, "", false}, {"copc", std::nullopt, "", false}, {"gauc_groups", 12, "", true}};
  (*log)->Write(eval);

  std::ifstream file(folder + "/metrics.jsonl");
  std::string line;
  ASSERT_TRUE(std::getline(file, line));
  const auto first = nlohmann::json::parse(line);
  EXPECT_EQ(first["event"], "train");
  EXPECT_EQ(first["iter"], 10);
  EXPECT_EQ(first["loss"], 0.5);
  EXPECT_GT(first["samples_per_second"], 0);
  EXPECT_FALSE(first.contains("auc"));
  ASSERT_TRUE(std::getline(file, line));
  const auto second = nlohmann::json::parse(line);
  EXPECT_EQ(second["auc"], 0.75);
  EXPECT_EQ(second["ne"], 0.5);
  EXPECT_TRUE(second["copc"].is_null());
  EXPECT_TRUE(second["gauc_groups"].is_number_integer());
  EXPECT_EQ(seen, 1);
}

// A run with evaluations during its second pass and after it, at the end of an epoch.
const std::vector<std::tuple<report::RunEvent, uint64_t, uint64_t>> kRun = {
    {report::RunEvent::kTrain, 5, 0}, {report::RunEvent::kTrain, 10, 0},
    {report::RunEvent::kPass, 10, 1}, {report::RunEvent::kTrain, 15, 1},
    {report::RunEvent::kEval, 15, 1}, {report::RunEvent::kTrain, 20, 1},
    {report::RunEvent::kEval, 20, 1}, {report::RunEvent::kPass, 20, 2},
    {report::RunEvent::kEval, 20, 2}, {report::RunEvent::kTrain, 25, 2},
    {report::RunEvent::kPass, 30, 3}, {report::RunEvent::kFinal, 30, 3}};

class MetricsFile : public testing::Test {
 protected:
  void Write(MetricsLog& log, report::RunEvent event, uint64_t iter, uint64_t pass) {
    Progress progress;
    progress.event = event;
    progress.iter = iter;
    progress.samples = iter * 10;
    progress.pass = pass;
    log.Write(progress);
  }
  void WriteRun() {
    auto log = MetricsLog::Create(Disk(), folder_, nullptr).value();
    ASSERT_TRUE(log->StartAt({}).ok());
    for (const auto& [event, iter, pass] : kRun) Write(*log, event, iter, pass);
  }
  // "event iter pass" of each line.
  std::vector<std::string> Lines() {
    std::vector<std::string> lines;
    std::ifstream file(folder_ + "/metrics.jsonl");
    double seconds = 0;
    for (std::string text; std::getline(file, text);) {
      const auto line = nlohmann::json::parse(text);
      lines.push_back(absl::StrCat(line["event"].get<std::string>(), " ", line["iter"].get<int>(),
                                   " ", line["pass"].get<int>()));
      EXPECT_GE(line["seconds"].get<double>(), seconds);
      seconds = line["seconds"].get<double>();
    }
    return lines;
  }
  std::vector<std::string> First(size_t count) {
    std::vector<std::string> lines;
    for (const auto& [event, iter, pass] : kRun) {
      if (lines.size() < count)
        lines.push_back(absl::StrCat(report::EventName(event), " ", iter, " ", pass));
    }
    return lines;
  }

  const TempFolder temp_folder_;
  const std::string folder_ = temp_folder_ / "run";
};

TEST_F(MetricsFile, ContinuesAfterTheLineOfTheCommit) {
  for (const auto& [pass, kept] : std::map<PassId, size_t>{{0, 0}, {1, 3}, {2, 8}, {3, 11}}) {
    WriteRun();
    auto log = MetricsLog::Create(Disk(), folder_, nullptr).value();
    const auto has_line = log->StartAt({pass * 10, pass * 100, pass});
    EXPECT_EQ(has_line.value(), pass > 0);
    EXPECT_EQ(Lines(), First(kept));
    Write(*log, report::RunEvent::kResume, pass * 10, pass);
    std::vector<std::string> lines = First(kept);
    lines.push_back(absl::StrCat("resume ", pass * 10, " ", pass));
    EXPECT_EQ(Lines(), lines);
    // A second time: the lines of the resume stay, later lines are removed.
    Write(*log, report::RunEvent::kTrain, pass * 10 + 5, pass);
    log = MetricsLog::Create(Disk(), folder_, nullptr).value();
    ASSERT_TRUE(log->StartAt({pass * 10, pass * 100, pass}).ok());
    if (pass == 0) lines.clear();
    EXPECT_EQ(Lines(), lines);
  }
}

TEST_F(MetricsFile, ReportsWhetherTheCommitHasItsLine) {
  WriteRun();
  // The process ended after the commit of pass 2, while it wrote the commit's line.
  std::filesystem::path path = folder_ + "/metrics.jsonl";
  std::string text;
  std::ifstream file(path);
  for (size_t i = 0; i < 7; ++i) {
    std::string line;
    std::getline(file, line);
    text += line + "\n";
  }
  std::ofstream(path) << text << "{\"event\":\"pass\",\"it";
  auto log = MetricsLog::Create(Disk(), folder_, nullptr).value();
  EXPECT_FALSE(log->StartAt({20, 200, 2}).value());
  EXPECT_EQ(Lines(), First(7));
}

TEST_F(MetricsFile, AFinishedRunLosesOnlyItsLastLine) {
  WriteRun();
  constexpr uint64_t kAll = std::numeric_limits<uint64_t>::max();
  auto log = MetricsLog::Create(Disk(), folder_, nullptr).value();
  ASSERT_TRUE(log->StartAt({kAll, 200, kAll}).ok());
  EXPECT_EQ(Lines(), First(kRun.size() - 1));
}

// The callback learns of steps at once, and of the pass when it is committed.
TEST_F(MetricsFile, LinesAfterAPassWaitForItsCommit) {
  std::vector<std::string> seen;
  auto log = MetricsLog::Create(Disk(), folder_, [&](const Progress& p) {
               seen.push_back(absl::StrCat(report::EventName(p.event), " ", p.iter));
             }).value();
  ASSERT_TRUE(log->StartAt({}).ok());
  Write(*log, report::RunEvent::kTrain, 10, 0);
  Progress pass;
  pass.event = report::RunEvent::kPass;
  pass.iter = 10;
  pass.pass = 1;
  log->Hold(pass);
  Write(*log, report::RunEvent::kTrain, 15, 1);
  EXPECT_EQ(Lines(), std::vector<std::string>{"train 10 0"});
  EXPECT_EQ(seen, (std::vector<std::string>{"train 10", "train 15"}));
  log->Release();
  Write(*log, report::RunEvent::kTrain, 20, 1);
  EXPECT_EQ(Lines(),
            (std::vector<std::string>{"train 10 0", "pass 10 1", "train 15 1", "train 20 1"}));
  EXPECT_EQ(seen, (std::vector<std::string>{"train 10", "train 15", "pass 10", "train 20"}));
  // A pass that is lost takes its line along.
  log->Hold(pass);
  Write(*log, report::RunEvent::kTrain, 25, 1);
  ASSERT_TRUE(log->StartAt({10, 100, 1}).ok());
  log->Release();
  EXPECT_EQ(Lines(), (std::vector<std::string>{"train 10 0", "pass 10 1"}));
}

TEST_F(MetricsFile, RatesAndTimesCountFromTheResume) {
  WriteRun();
  double rate = -1;
  auto log = MetricsLog::Create(Disk(), folder_, [&](const Progress& p) {
               rate = p.samples_per_second;
             }).value();
  ASSERT_TRUE(log->StartAt({20, 200, 2}).ok());
  Write(*log, report::RunEvent::kTrain, 20, 2);
  EXPECT_EQ(rate, 0);  // no samples since the resume
}

TEST(MetricsLog, AnErrorNamesAnOutputFolderThatCannotBeCreated) {
  const auto log = MetricsLog::Create(Disk(), "/proc/no/such", nullptr);
  ASSERT_FALSE(log.ok());
  EXPECT_NE(std::string(log.status().message()).find("/proc/no/such"), std::string::npos);
}

TEST_F(MetricsFile, KeepsTheLossThatPrecedesAReturnToTheCommit) {
  auto log = MetricsLog::Create(Disk(), folder_, nullptr).value();
  ASSERT_TRUE(log->StartAt({}).ok());
  Write(*log, report::RunEvent::kPass, 10, 1);
  Write(*log, report::RunEvent::kTrain, 15, 1);
  Write(*log, report::RunEvent::kLost, 10, 1);
  ASSERT_TRUE(log->StartAt({10, 100, 1}).ok());
  Write(*log, report::RunEvent::kRecover, 10, 1);
  EXPECT_EQ(Lines(), std::vector<std::string>({"pass 10 1", "lost 10 1", "recover 10 1"}));
}

TEST(MetricsLog, TellsHowLongEachPhaseTookSinceTheLastSuchLine) {
  const TempFolder folder;
  auto log = MetricsLog::Create(Disk(), folder.path(), nullptr).value();
  ASSERT_TRUE(log->StartAt({}).ok());
  EXPECT_EQ(log->Enter(Phase::kRead), std::nullopt);
  EXPECT_EQ(log->Enter(Phase::kTrain), Phase::kRead);
  Progress progress;
  for (const report::RunEvent event :
       {report::RunEvent::kTrain, report::RunEvent::kPass, report::RunEvent::kEval}) {
    progress.event = event;
    log->Write(progress);
  }
  std::ifstream file(folder.path() + "/metrics.jsonl");
  std::vector<nlohmann::json> lines;
  for (std::string text; std::getline(file, text);) lines.push_back(nlohmann::json::parse(text));
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_FALSE(lines[0].contains("phases"));
  EXPECT_GT(lines[1]["phases"]["read"], 0);
  EXPECT_GT(lines[1]["phases"]["train"], 0);
  EXPECT_FALSE(lines[2]["phases"].contains("read"));
}

TEST(MetricsLog, WritesTheScoresOfTheEvaluationThatTheFinalEventRepeats) {
  const TempFolder folder;
  auto log = MetricsLog::Create(Disk(), folder.path(), nullptr).value();
  ASSERT_TRUE(log->StartAt({}).ok());
  Progress progress;
  for (const double auc : {0.6, 0.8, 0.7}) {
    report::ScoreDetail detail;
    detail.samples = static_cast<uint64_t>(auc * 1000);
    progress.event = report::RunEvent::kEval;
    progress.iter += 10;
    progress.auc = auc;
    progress.logloss = 1 - auc;
    progress.scores = std::make_shared<report::ScoreDetail>(detail);
    log->Write(progress);
  }
  progress.event = report::RunEvent::kFinal;
  progress.auc = 0.8;  // the best epoch, not the last
  progress.logloss = 1 - 0.8;
  progress.scores = nullptr;
  log->Write(progress);
  const auto text = ReadWhole(Disk(), folder.path() + "/evaluation.json", 1 << 20);
  ASSERT_TRUE(text.ok()) << text.status();
  const auto detail = report::ParseScoreDetail(*text);
  ASSERT_TRUE(detail.ok()) << detail.status();
  EXPECT_EQ(detail->samples, 800u);
  EXPECT_EQ(detail->iter, 20u);
}

TEST(MetricsLog, WritesAWarningOnceAfterTheEventThatCausesIt) {
  const TempFolder folder;
  std::vector<report::RunEvent> events;
  auto log = MetricsLog::Create(Disk(), folder.path(), [&](const Progress& p) {
               events.push_back(p.event);
             }).value();
  ASSERT_TRUE(log->StartAt({}).ok());
  Progress progress;
  progress.event = report::RunEvent::kEval;
  progress.auc = 0.9999;
  progress.logloss = 0.01;
  log->Write(progress);
  log->Write(progress);
  EXPECT_EQ(events,
            std::vector<report::RunEvent>(
                {report::RunEvent::kEval, report::RunEvent::kWarning, report::RunEvent::kEval}));
  const std::string text = ReadWhole(Disk(), folder.path() + "/metrics.jsonl", 1 << 20).value();
  EXPECT_NE(text.find("\"event\":\"warning\""), std::string::npos);
}

// Each file system call fails once: either the log reports the error before its first line, or the
// run continues without lines.
TEST(MetricsLog, AFailingDiskDoesNotEndTheRun) {
  for (const Fault fault : {Fault::kNoSpace, Fault::kInputOutput, Fault::kShortWrite}) {
    for (uint64_t call = 1, hits = 1; hits > 0; ++call) {
      SCOPED_TRACE(call);
      MemoryFileSystem memory;
      FaultFileSystem disk(&memory);
      disk.FailCall(call, fault);
      int seen = 0;
      const auto log = MetricsLog::Create(disk, "/run", [&](const Progress&) { ++seen; });
      const absl::Status begun = log.ok() ? (*log)->StartAt({}).status() : log.status();
      hits = disk.hits().size();
      if (!begun.ok()) {
        EXPECT_EQ(hits, 1u);
        continue;
      }
      for (const report::RunEvent event :
           {report::RunEvent::kTrain, report::RunEvent::kPass, report::RunEvent::kEval}) {
        Progress progress;
        progress.event = event;
        (*log)->Write(progress);
      }
      EXPECT_EQ(seen, 3);
      hits = disk.hits().size();
      const std::string text = ReadWhole(memory, "/run/metrics.jsonl", 1 << 20).value();
      EXPECT_EQ(std::count(text.begin(), text.end(), '\n') == 3, hits == 0);
    }
  }
}

}  // namespace
}  // namespace cistern
