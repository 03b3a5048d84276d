#include "serve/server/request_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "serve/server/samples.h"
#include "test/serve/server/fake_predictor.h"
#include "test/serve/server/tensors.h"
#include "test/support/temp_folder.h"

namespace cistern::serve {
namespace {

using testing::HasSubstr;

class RequestLogTest : public testing::Test {
 protected:
  Samples samples_ = *Samples::Decode(FakePredictor().shape(), 100, TwoSamples());
  const std::vector<float> predictions_ = {0.1f, 1.f / 3};
  PredictorShape shape_ = FakePredictor().shape();
  TempFolder folder_;

  void AddTo(RequestLog* log, int count) {
    for (int i = 0; i < count; ++i) {
      log->Add(std::to_string(i), shape_, samples_.request(), predictions_, 7, 1);
    }
  }
  // Waits until they are written, or dropped.
  void Write(RequestLog* log, int count) {
    const uint64_t before = log->logged() + log->dropped();
    AddTo(log, count);
    while (log->logged() + log->dropped() < before + count) std::this_thread::yield();
  }
  // The lines of a file, each of which must be whole.
  static int Lines(const std::string& path) {
    std::istringstream text(ReadBytes(path));
    int lines = 0;
    for (std::string line; std::getline(text, line); ++lines) {
      EXPECT_TRUE(nlohmann::json::accept(line)) << line;
    }
    return lines;
  }
};

TEST_F(RequestLogTest, LinesHoldTheWholeRequestExactly) {
  const std::string line =
      RequestLogLine("\"9\"", shape_, samples_.request(), predictions_, uint64_t{1} << 60, 3);
  const auto json = nlohmann::json::parse(line);
  EXPECT_EQ(json["commit"], uint64_t{1} << 60);
  EXPECT_EQ(json["id"], "\"9\"");
  EXPECT_EQ(json["samples"], 2);
  EXPECT_EQ(json["dense"], nlohmann::json::parse("[0.5,1,2,3]"));
  EXPECT_EQ(json["inputs"], nlohmann::json::parse(R"([
      {"name":"wide","keys":[1,2,3,4],"offsets":[0,1,3,3,4]},
      {"name":"deep","keys":[5,6,7],"offsets":[0,1,3]}])"));
  EXPECT_EQ(json["unseen_keys"], 3);
  EXPECT_EQ(json["probability"][0].get<float>(), predictions_[0]);
  EXPECT_EQ(json["probability"][1].get<float>(), predictions_[1]);
  EXPECT_EQ(line.back(), '\n');
}

TEST_F(RequestLogTest, TakesItsShareOfTheRequests) {
  for (const double share : {0.0, 0.01, 0.3, 1.0}) {
    auto log = RequestLog::Open({folder_ / "log", share});
    ASSERT_TRUE(log.ok()) << log.status();
    int chosen = 0;
    for (int i = 0; i < 1000; ++i) chosen += (*log)->Chooses();
    EXPECT_NEAR(chosen, share * 1000, 1);
  }
  EXPECT_FALSE(RequestLog::Open({folder_ / "log", 1.5}).ok());
  EXPECT_FALSE(RequestLog::Open({folder_ / "log", std::nan("")}).ok());
  EXPECT_THAT(RequestLog::Open({folder_ / "none/log", 1}).status().message(),
              HasSubstr("none/log"));
}

TEST_F(RequestLogTest, RotatesAndKeepsWhatWasThere) {
  const std::string path = folder_ / "log";
  WriteBytes(path, "of an earlier run\n");
  const size_t line = RequestLogLine("0", shape_, samples_.request(), predictions_, 7, 1).size();
  {
    auto log = RequestLog::Open({path, 1, 3 * line});
    ASSERT_TRUE(log.ok());
    EXPECT_EQ(ReadBytes(path + ".1"), "of an earlier run\n");
    AddTo(log->get(), 8);
  }
  EXPECT_EQ(ReadBytes(path + ".1").size(), 3 * line);
  EXPECT_EQ(ReadBytes(path).size(), 2 * line);
  EXPECT_THAT(ReadBytes(path), HasSubstr("\"id\":\"7\""));
  struct stat status = {};
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST_F(RequestLogTest, LeavesAloneWhatIsNotAFile) {
  const std::string folder = folder_ / "log", target = folder_ / "target";
  std::filesystem::create_directory(folder);
  EXPECT_THAT(RequestLog::Open({folder, 1}).status().message(), HasSubstr("is not a file"));
  EXPECT_TRUE(std::filesystem::is_directory(folder));
  WriteBytes(target, "x");
  std::filesystem::create_symlink(target, folder_ / "link");
  EXPECT_FALSE(RequestLog::Open({folder_ / "link", 1}).ok());
}

// What logrotate does with its options "nocreate", "create" and "copytruncate".
TEST_F(RequestLogTest, LeavesAFileThatIsRotatedByAnotherProgram) {
  const std::string path = folder_ / "log", moved = folder_ / "log-20261125";
  auto log = RequestLog::Open({path, 1});
  ASSERT_TRUE(log.ok());
  Write(log->get(), 1);
  std::filesystem::rename(path, moved);
  Write(log->get(), 2);
  EXPECT_EQ(Lines(moved), 1);
  EXPECT_EQ(Lines(path), 2);
  std::filesystem::rename(path, moved);
  WriteBytes(path, "");
  Write(log->get(), 1);
  EXPECT_EQ(Lines(moved), 2);
  EXPECT_EQ(Lines(path), 1);
  std::filesystem::resize_file(path, 0);
  Write(log->get(), 1);
  EXPECT_EQ(Lines(path), 1);
  EXPECT_FALSE(std::filesystem::exists(path + ".1"));
  EXPECT_EQ((*log)->dropped(), 0u);
}

TEST_F(RequestLogTest, ContinuesAfterAFaultThatPasses) {
  const std::string folder = folder_ / "logs", path = folder + "/log";
  std::filesystem::create_directory(folder);
  auto log = RequestLog::Open({path, 1});
  ASSERT_TRUE(log.ok());
  Write(log->get(), 1);
  std::filesystem::rename(folder, folder_ / "away");
  Write(log->get(), 3);
  EXPECT_EQ((*log)->dropped(), 3u);
  std::filesystem::rename(folder_ / "away", folder);
  Write(log->get(), 1);
  EXPECT_EQ((*log)->dropped(), 3u);
  EXPECT_EQ(Lines(path), 2);
}

TEST_F(RequestLogTest, HoldsNoHalfLineWhenTheDiskIsFull) {
  const std::string path = folder_ / "log";
  auto log = RequestLog::Open({path, 1});
  ASSERT_TRUE(log.ok());
  Write(log->get(), 1);
  // A limit on the size of files fails in the middle of a line, as a full disk does.
  struct rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  const struct rlimit small = {std::filesystem::file_size(path) * 3 / 2, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  Write(log->get(), 1);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  signal(SIGXFSZ, handler);
  EXPECT_EQ((*log)->dropped(), 1u);
  EXPECT_EQ(Lines(path), 1);
  Write(log->get(), 1);
  EXPECT_EQ(Lines(path), 2);
}

}  // namespace
}  // namespace cistern::serve
