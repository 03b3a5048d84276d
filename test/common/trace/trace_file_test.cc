#include "common/trace/trace_file.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "test/support/fault_file_system.h"
#include "test/support/temp_folder.h"

namespace cistern {
namespace {

using nlohmann::json;

SteadyTime After(SteadyTime begin, double milliseconds) {
  return begin + std::chrono::duration_cast<SteadyTime::duration>(
                     std::chrono::duration<double, std::milli>(milliseconds));
}

class TraceFileTest : public ::testing::Test {
 protected:
  std::unique_ptr<TraceFile> Create(uint64_t max_bytes = 1 << 20) {
    TraceOptions options;
    options.path = path_;
    options.run = "abc";
    options.rank = 3;
    options.max_bytes = max_bytes;
    auto trace = TraceFile::Create(files_, options);
    EXPECT_TRUE(trace.ok()) << trace.status();
    return *std::move(trace);
  }
  std::string Text() { return ReadWhole(files_, path_, 1 << 30).value(); }
  // The events with this value of `field`.
  std::vector<json> Where(const char* field, const json& value) {
    std::vector<json> found;
    for (const json& event : json::parse(Text())) {
      if (event.contains(field) && event[field] == value) found.push_back(event);
    }
    return found;
  }

  TempFolder folder_;
  LocalFileSystem files_;
  const std::string path_ = folder_.path() + "/trace.json";
  const SteadyTime now_ = std::chrono::steady_clock::now();
};

TEST_F(TraceFileTest, SpansAreOfTheirThreadsAndPasses) {
  auto trace = Create();
  trace->AddSpan("training", "read", now_, After(now_, 2));
  trace->AddSpan("commit", "push", After(now_, 1), After(now_, 4), 7);
  trace->AddSpan("training", "train", After(now_, 2), After(now_, 9));
  const double created = absl::ToDoubleSeconds(absl::Now() - absl::UnixEpoch()) * 1e6;
  trace.reset();
  const json read = Where("name", "read").at(0), push = Where("name", "push").at(0),
             train = Where("name", "train").at(0);
  EXPECT_EQ(read["ph"], "X");
  EXPECT_EQ(read["tid"], train["tid"]);
  EXPECT_NE(read["tid"], push["tid"]);
  EXPECT_EQ(read["pid"], push["pid"]);
  EXPECT_NEAR(push["dur"].get<double>(), 3000, 1);
  EXPECT_NEAR(push["ts"].get<double>() - read["ts"].get<double>(), 1000, 1);
  EXPECT_NEAR(read["ts"].get<double>(), created, 60e6);
  EXPECT_EQ(push["args"]["pass"], 7);
  EXPECT_FALSE(read.contains("args"));
  EXPECT_EQ(Where("name", "process_name").at(0)["args"]["name"], "worker 3 of run abc");
  EXPECT_EQ(Where("name", "thread_name").size(), 2u);
}

TEST_F(TraceFileTest, ACallIsInItsWorkerAndInItsServer) {
  auto trace = Create();
  TracedCall call;
  call.id = trace->NextCallId();
  EXPECT_EQ(call.id, "abc/3/1");
  EXPECT_EQ(trace->NextCallId(), "abc/3/2");
  call.server = "10.0.0.1:7700";
  call.method = "Pull";
  call.begin = now_;
  call.end = After(now_, 10);
  call.request_bytes = 80;
  call.reply_bytes = 4000;
  call.error = "UNAVAILABLE";
  call.handled = absl::Milliseconds(4);
  trace->AddCall(call);
  trace.reset();
  std::vector<json> pair = Where("pid", 4);
  pair.erase(pair.begin());  // the name
  ASSERT_EQ(pair.size(), 2u);
  EXPECT_EQ(pair[0]["ph"], "b");
  EXPECT_EQ(pair[1]["ph"], "e");
  EXPECT_EQ(pair[0]["args"]["reply_bytes"], 4000);
  EXPECT_EQ(pair[0]["args"]["error"], "UNAVAILABLE");
  const std::vector<json> named = Where("name", "process_name");
  ASSERT_EQ(named.size(), 2u);
  EXPECT_EQ(named[1]["args"]["name"], "server 10.0.0.1:7700");
  std::vector<json> handled = Where("pid", named[1]["pid"]);
  ASSERT_EQ(handled.size(), 3u);
  EXPECT_EQ(handled[1]["id"], call.id);
  // In the middle: 3 ms each way.
  EXPECT_NEAR(handled[1]["ts"].get<double>() - pair[0]["ts"].get<double>(), 3000, 1);
  EXPECT_NEAR(handled[2]["ts"].get<double>() - pair[0]["ts"].get<double>(), 7000, 1);
}

TEST_F(TraceFileTest, AServerCannotTakeLongerThanTheCall) {
  auto trace = Create();
  TracedCall call;
  call.server = "s";
  call.method = "Pull";
  call.begin = now_;
  call.end = After(now_, 1);
  call.handled = absl::Hours(3);
  trace->AddCall(call);
  call.handled = -absl::Hours(3);
  trace->AddCall(call);
  call.end = After(now_, -5);
  trace->AddCall(call);
  trace.reset();
  const std::vector<json> begun = Where("ph", "b"), ended = Where("ph", "e");
  ASSERT_EQ(begun.size(), 6u);
  for (size_t i = 0; i < begun.size(); ++i) {
    EXPECT_GE(ended[i]["ts"], begun[i]["ts"]) << i;
    EXPECT_LE(ended[i]["ts"].get<double>() - begun[0]["ts"].get<double>(), 1001) << i;
  }
}

TEST_F(TraceFileTest, AFullFileIsCompleteAndDoesNotGrow) {
  auto trace = Create(/*max_bytes=*/2000);
  for (int i = 0; i < 100; ++i) trace->AddSpan("training", "read", now_, now_, 1);
  const std::string full = Text();
  EXPECT_LE(full.size(), 2003u);
  EXPECT_GT(json::parse(full).size(), 5u);
  trace->AddSpan("training", "read", now_, now_, 1);
  trace.reset();
  EXPECT_EQ(Text(), full);
}

TEST_F(TraceFileTest, TakesThePlaceOfAnOlderFileOnly) {
  Create()->AddSpan("training", "an older run", now_, now_);
  Create().reset();
  EXPECT_EQ(Where("name", "an older run").size(), 0u);
  TraceOptions options;
  options.path = folder_.path();
  EXPECT_EQ(TraceFile::Create(files_, options).status().code(), absl::StatusCode::kInvalidArgument);
  options.path = "/dev/null";
  EXPECT_EQ(TraceFile::Create(files_, options).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(TraceFileTest, NamesWithAnyBytesAreText) {
  auto trace = Create();
  trace->AddSpan("training \"\n\xff", "read\\", now_, now_);
  trace.reset();
  EXPECT_EQ(Where("name", "read\\").size(), 1u);
}

TEST_F(TraceFileTest, AFailingDiskEndsTheTraceOnly) {
  FaultFileSystem faulty(&files_);
  TraceOptions options;
  options.path = path_;
  auto trace = TraceFile::Create(faulty, options);
  ASSERT_TRUE(trace.ok()) << trace.status();
  faulty.FailCall(1, Fault::kNoSpace);
  (*trace)->AddSpan("training", "read", now_, now_);
  (*trace)->AddSpan("training", "train", now_, now_);
  trace->reset();
  EXPECT_EQ(faulty.hits().size(), 1u);
  EXPECT_EQ(Text().find("\"train\""), std::string::npos);
}

}  // namespace
}  // namespace cistern
