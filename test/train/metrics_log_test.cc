#include "worker/train/metrics_log.h"

#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

namespace cistern {
namespace {

TEST(MetricsLog, WritesOneJsonObjectALineAndHandsEventsOn) {
  const std::string folder = testing::TempDir() + "/metrics_log_test/deep";
  int seen = 0;
  auto log = MetricsLog::Create(folder, [&](const Progress& p) { seen += p.event == "eval"; });
  ASSERT_TRUE(log.ok()) << log.status();
  Progress train;
  train.event = "train";
  train.iter = 10;
  train.samples = 40960;
  train.loss = 0.5;
  (*log)->Write(train);
  Progress eval;
  eval.event = "eval";
  eval.auc = 0.75;
  eval.logloss = 0.25;
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
  EXPECT_EQ(nlohmann::json::parse(line)["auc"], 0.75);
  EXPECT_EQ(seen, 1);
}

TEST(MetricsLog, AnOutputFolderThatCannotBeMadeIsRefusedWithItsName) {
  const auto log = MetricsLog::Create("/proc/no/such", nullptr);
  ASSERT_FALSE(log.ok());
  EXPECT_NE(std::string(log.status().message()).find("/proc/no/such"), std::string::npos);
}

}  // namespace
}  // namespace cistern
