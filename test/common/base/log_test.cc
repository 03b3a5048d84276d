#include "common/base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace cistern {
namespace {

using testing::MatchesRegex;

// What `write` logs, without the end of the line.
template <class F>
std::string Logged(const F& write) {
  testing::internal::CaptureStderr();
  write();
  std::string text = testing::internal::GetCapturedStderr();
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

class LogTest : public testing::Test {
 protected:
  ~LogTest() override {
    SetLogFormat("text");
    SetLogName("");
    SetLogRun("");
    SetLogLevel("info");
  }
};

TEST_F(LogTest, WritesTextWithItsTimeInUtc) {
  SetLogName("server-2");
  SetLogRun("cafe");
  const absl::Time before = absl::Now();
  const std::string line = Logged([] { LogWarning("a pass is open"); });
  const std::vector<std::string> parts = absl::StrSplit(line, ' ');
  ASSERT_GE(parts.size(), 3u) << line;
  absl::Time time;
  std::string error;
  ASSERT_TRUE(absl::ParseTime(absl::RFC3339_full, parts[0] + "T" + parts[1], &time, &error))
      << line;
  EXPECT_LT(absl::AbsDuration(time - before), absl::Minutes(1));
  EXPECT_THAT(line, MatchesRegex(".*Z warning server-2 a pass is open"));
}

TEST_F(LogTest, WritesAnObjectALine) {
  SetLogFormat("json");
  SetLogName("server-2");
  SetLogRun("cafe");
  const std::string line = Logged([] { LogError("a \"name\"\nof \xff bytes"); });
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const auto json = nlohmann::json::parse(line);
  EXPECT_EQ(json["level"], "error");
  EXPECT_EQ(json["process"], "server-2");
  EXPECT_EQ(json["run"], "cafe");
  EXPECT_EQ(json["message"], "a \"name\"\nof \xEF\xBF\xBD bytes");
  absl::Time time;
  std::string error;
  ASSERT_TRUE(absl::ParseTime(absl::RFC3339_full, json["time"].get<std::string>(), &time, &error));
  EXPECT_LT(absl::AbsDuration(time - absl::Now()), absl::Minutes(1));
}

TEST_F(LogTest, LeavesOutWhatIsNotSetAndWhatIsBelowTheLevel) {
  SetLogFormat("json");
  SetLogLevel("warning");
  EXPECT_EQ(Logged([] { LogInfo("hidden"); }), "");
  const auto json = nlohmann::json::parse(Logged([] { LogWarning("shown"); }));
  EXPECT_FALSE(json.contains("process"));
  EXPECT_FALSE(json.contains("run"));
}

}  // namespace
}  // namespace cistern
