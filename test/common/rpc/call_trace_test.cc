#include "common/rpc/call_trace.h"

#include <grpcpp/create_channel.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_split.h"
#include "proto/control_plane.grpc.pb.h"
#include "test/common/rpc/loopback.h"
#include "test/support/temp_folder.h"

namespace cistern {
namespace {

using nlohmann::json;

class CallTraceTest : public ::testing::Test {
 protected:
  std::vector<json> Events() {
    std::vector<json> events;
    for (json& event :
         json::parse(ReadWhole(files_, folder_.path() + "/trace.json", 1 << 20).value())) {
      if (event["ph"] == "b") events.push_back(std::move(event));
    }
    return events;
  }

  TempFolder folder_;
  LocalFileSystem files_;
};

TEST_F(CallTraceTest, CallsOfBothPlanesSayHowLongTheServerTook) {
  TraceOptions options;
  options.path = folder_.path() + "/trace.json";
  options.run = "abc";
  std::unique_ptr<TraceFile> trace = TraceFile::Create(files_, options).value();
  {
    RemoteOptions remote;
    remote.trace = trace.get();
    Loopback loopback(remote);
    loopback.data.answer = [](FrameKind, Frame, absl::Duration, DataPlane::Done done) {
      done(DenseFrame(FrameKind::kPullDense, 3, true));
    };
    v1::HelloReply hello;
    EXPECT_TRUE(loopback.server->Hello(v1::HelloRequest(), &hello).ok());
    v1::StatsReply stats;
    EXPECT_FALSE(loopback.server->Stats(v1::StatsRequest(), &stats).ok());
    loopback.Call(FrameKind::kPullDense, DenseFrame(FrameKind::kPullDense, 3, false)).IgnoreError();
  }
  trace.reset();
  const std::vector<json> events = Events();
  ASSERT_EQ(events.size(), 6u);  // each call in the worker, and in the server
  std::vector<std::string> methods;
  for (size_t i = 0; i < events.size(); i += 2) {
    methods.push_back(events[i]["name"]);
    EXPECT_NE(events[i]["pid"], events[i + 1]["pid"]);
    EXPECT_EQ(events[i]["id"], events[i + 1]["id"]);
    EXPECT_EQ(events[i]["id"], absl::StrCat("abc/0/", i / 2 + 1));
  }
  EXPECT_EQ(methods, (std::vector<std::string>{"Hello", "Stats", "PullDense"}));
  EXPECT_EQ(events[2]["args"]["error"], "INTERNAL");
}

TEST_F(CallTraceTest, OnlyAShortPrintableIdIsOne) {
  HostOptions options;
  options.audit_log = folder_.path() + "/audit.jsonl";
  Loopback loopback({}, options);
  auto stub = v1::ControlPlane::NewStub(grpc::CreateChannel(
      absl::StrCat("127.0.0.1:", loopback.host->port()), grpc::InsecureChannelCredentials()));
  for (const std::string& id : {std::string("run/0/1"), std::string(129, 'x'), std::string()}) {
    grpc::ClientContext context;
    if (!id.empty()) context.AddMetadata(kTraceIdName, id);
    v1::PassReply reply;
    EXPECT_FALSE(stub->AbortPass(&context, v1::PassRequest(), &reply).ok());
    EXPECT_EQ(HandledTimeOf(context).has_value(), id == "run/0/1") << id;
  }
  std::vector<bool> traced;
  const std::string lines = ReadWhole(files_, options.audit_log, 1 << 20).value();
  for (const absl::string_view line : absl::StrSplit(lines, '\n', absl::SkipEmpty())) {
    traced.push_back(json::parse(line).value("trace", "") == "run/0/1");
  }
  EXPECT_EQ(traced, (std::vector<bool>{true, false, false}));
}

}  // namespace
}  // namespace cistern
