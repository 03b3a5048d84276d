// Both planes over a real connection of this process to itself: what goes in comes out.
#include "common/rpc/server_host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "absl/synchronization/notification.h"
#include "common/rpc/remote_server.h"

namespace cistern {
namespace {

using testing::HasSubstr;

// Every verb fails with its own name, so that a test sees which one was reached.
class NamingControl : public ControlPlane {
 public:
  absl::Status Hello(const v1::HelloRequest& request, v1::HelloReply* reply) override {
    if (hello_gate != nullptr) hello_gate->WaitForNotification();
    reply->set_cluster("to " + request.client());
    return absl::OkStatus();
  }
  absl::Status ClaimEpoch(const v1::ClaimEpochRequest&, v1::PassReply*) override {
    return absl::FailedPreconditionError("ClaimEpoch");
  }
  absl::Status Meet(const v1::MeetRequest&, v1::MeetReply*) override {
    return absl::InvalidArgumentError("Meet");
  }
  absl::Status CreateTables(const v1::CreateTablesRequest&, v1::CreateTablesReply*) override {
    return absl::InvalidArgumentError("CreateTables");
  }
  absl::Status BeginPass(const v1::PassRequest&, v1::PassReply*) override {
    return absl::FailedPreconditionError("BeginPass");
  }
  absl::Status SealPass(const v1::SealPassRequest&, v1::PassReply*) override {
    return absl::OutOfRangeError("SealPass");
  }
  absl::Status PreparePass(const v1::PreparePassRequest&, v1::PreparePassReply*) override {
    return absl::InvalidArgumentError("PreparePass");
  }
  absl::Status Decide(const v1::DecideRequest&, v1::DecideReply*) override {
    return absl::AlreadyExistsError("Decide");
  }
  absl::Status GetManifest(const v1::GetManifestRequest&, v1::GetManifestReply*) override {
    return absl::NotFoundError("GetManifest");
  }
  absl::Status Shrink(const v1::ShrinkRequest&, v1::ShrinkReply*) override {
    return absl::InternalError("Shrink");
  }
  absl::Status UpdateAfterSave(const v1::UpdateAfterSaveRequest&, v1::PassReply*) override {
    return absl::InternalError("UpdateAfterSave");
  }
  absl::Status Scrub(const v1::ScrubRequest&, v1::ScrubReply*) override {
    return absl::DataLossError("Scrub");
  }
  absl::Status CommitPass(const v1::CommitPassRequest&, v1::PassReply*) override {
    return absl::FailedPreconditionError("CommitPass");
  }
  absl::Status AbortPass(const v1::PassRequest&, v1::PassReply*) override {
    return absl::InternalError("AbortPass");
  }
  absl::Status Save(const v1::SaveRequest&, v1::SaveReply*) override {
    return absl::ResourceExhaustedError("Save");
  }
  absl::Status Load(const v1::LoadRequest&, v1::LoadReply*) override {
    return absl::DataLossError("Load");
  }
  absl::Status Clear(const v1::ClearRequest&, v1::PassReply*) override {
    return absl::InternalError("Clear");
  }
  absl::Status Stats(const v1::StatsRequest&, v1::StatsReply*) override {
    return absl::InternalError("Stats");
  }
  absl::Status GetRow(const v1::GetRowRequest&, v1::GetRowReply*) override {
    return absl::NotFoundError("GetRow");
  }
  absl::Notification* hello_gate = nullptr;
};

// Answers with what the test says.
class ScriptedData : public DataPlane {
 public:
  void Call(FrameKind kind, Frame request, absl::Duration timeout, Done done) override {
    answer(kind, std::move(request), timeout, std::move(done));
  }
  std::function<void(FrameKind, Frame, absl::Duration, Done)> answer;
};

struct Loopback {
  explicit Loopback(const RemoteOptions& options = {}) {
    absl::StatusOr<std::unique_ptr<ServerHost>> started =
        ServerHost::Start("127.0.0.1", 0, &control, &data);
    EXPECT_TRUE(started.ok()) << started.status();
    host = *std::move(started);
    server = RemoteServer::Create(absl::StrCat("127.0.0.1:", host->port()), options);
  }
  absl::StatusOr<Frame> Call(FrameKind kind, const Frame& request,
                             absl::Duration timeout = absl::Seconds(30)) {
    absl::Notification done;
    absl::StatusOr<Frame> result;
    server->Call(kind, request, timeout, [&](absl::StatusOr<Frame> reply) {
      result = std::move(reply);
      done.Notify();
    });
    done.WaitForNotification();
    return result;
  }
  NamingControl control;
  ScriptedData data;
  std::unique_ptr<ServerHost> host;
  std::unique_ptr<RemoteServer> server;
};

Frame DenseFrame(FrameKind kind, uint32_t rows, bool body) {
  FrameHeader header;
  header.kind = static_cast<uint16_t>(kind);
  header.count = rows;
  header.stride = 1;
  Frame frame = StartFrame(header);
  std::vector<float> cells(rows);
  for (uint32_t i = 0; i < rows; ++i) cells[i] = static_cast<float>(i);
  if (body) frame.AppendBytes(cells.data(), cells.size() * sizeof(float));
  return frame;
}

std::string BytesOf(const Frame& frame) {
  std::string bytes(frame.size(), '\0');
  EXPECT_TRUE(FrameReader(frame).Read(bytes.data(), bytes.size()));
  return bytes;
}

TEST(ServerHost, DataArrivesByteForByteBothWays) {
  Loopback loopback;
  const Frame reply = DenseFrame(FrameKind::kPullDense, 3'000'000, true);  // above gRPC's 4 MiB
  const Frame request = DenseFrame(FrameKind::kPushDense, 3'000'000, true);
  loopback.data.answer = [&](FrameKind kind, Frame got, absl::Duration, DataPlane::Done done) {
    if (kind == FrameKind::kPullDense) return done(reply);
    EXPECT_EQ(kind, FrameKind::kPushDense);
    EXPECT_EQ(BytesOf(got), BytesOf(request));
    done(DenseFrame(FrameKind::kPushDense, 3'000'000, false));
  };
  absl::StatusOr<Frame> pulled =
      loopback.Call(FrameKind::kPullDense, DenseFrame(FrameKind::kPullDense, 3'000'000, false));
  ASSERT_TRUE(pulled.ok()) << pulled.status();
  EXPECT_EQ(BytesOf(*pulled), BytesOf(reply));
  EXPECT_TRUE(loopback.Call(FrameKind::kPushDense, request).ok());
}

TEST(ServerHost, EveryKindReachesThePlaneAsItself) {
  Loopback loopback;
  for (const FrameKind kind : {FrameKind::kPull, FrameKind::kPush, FrameKind::kPullDense,
                               FrameKind::kPushDense, FrameKind::kScan}) {
    loopback.data.answer = [&](FrameKind got, Frame, absl::Duration, DataPlane::Done done) {
      EXPECT_EQ(got, kind);
      done(absl::FailedPreconditionError(FrameKindName(got)));
    };
    EXPECT_EQ(loopback.Call(kind, DenseFrame(kind, 0, false)).status(),
              absl::FailedPreconditionError(FrameKindName(kind)));
  }
}

TEST(ServerHost, AnswersMayComeFromAnotherThread) {
  std::thread later;
  Loopback loopback;
  loopback.data.answer = [&](FrameKind, Frame, absl::Duration, DataPlane::Done done) {
    later = std::thread([done] { done(DenseFrame(FrameKind::kPullDense, 5, true)); });
  };
  EXPECT_TRUE(
      loopback.Call(FrameKind::kPullDense, DenseFrame(FrameKind::kPullDense, 5, false)).ok());
  later.join();
}

TEST(ServerHost, RequestsThatAreNoFramesGetAnAnswer) {
  Loopback loopback;
  loopback.data.answer = [](FrameKind kind, Frame got, absl::Duration, DataPlane::Done done) {
    FrameReader reader(got);
    done(ReadHeader(reader, kind, false).status());
  };
  for (const char* bytes : {"", "x", "CSF1 and then nothing that makes sense"}) {
    EXPECT_EQ(loopback.Call(FrameKind::kPull, Frame(std::string(bytes))).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

TEST(RemoteServer, CallsHaveADeadline) {
  RemoteOptions options;
  options.call_timeout = absl::Milliseconds(100);
  DataPlane::Done held;
  absl::Notification called, open;
  Loopback loopback(options);
  loopback.data.answer = [&](FrameKind, Frame, absl::Duration timeout, DataPlane::Done done) {
    EXPECT_LT(timeout, absl::Seconds(10));  // it travels, rounded
    held = std::move(done);
    called.Notify();
  };
  EXPECT_EQ(
      loopback
          .Call(FrameKind::kPull, DenseFrame(FrameKind::kPull, 0, false), absl::Milliseconds(100))
          .status()
          .code(),
      absl::StatusCode::kDeadlineExceeded);
  called.WaitForNotification();
  held(absl::InternalError("too late"));  // nobody hears it

  loopback.control.hello_gate = &open;
  v1::HelloReply reply;
  EXPECT_EQ(loopback.server->Hello({}, &reply).code(), absl::StatusCode::kDeadlineExceeded);
  open.Notify();
}

TEST(RemoteServer, AServerThatIsNotThereIsUnavailable) {
  Loopback loopback;
  loopback.host->Stop(absl::ZeroDuration());
  v1::HelloReply reply;
  EXPECT_EQ(loopback.server->Hello({}, &reply).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(loopback.Call(FrameKind::kPull, DenseFrame(FrameKind::kPull, 0, false)).status().code(),
            absl::StatusCode::kUnavailable);
}

TEST(RemoteServer, EveryControlVerbReachesItsOwn) {
  Loopback loopback;
  ControlPlane& server = *loopback.server;
  v1::HelloRequest hello;
  hello.set_client("me");
  v1::HelloReply hello_reply;
  ASSERT_EQ(server.Hello(hello, &hello_reply), absl::OkStatus());
  EXPECT_EQ(hello_reply.cluster(), "to me");

  v1::PassReply pass;
  v1::CreateTablesReply created;
  v1::SaveReply saved;
  v1::LoadReply loaded;
  v1::StatsReply stats;
  v1::GetRowReply row;
  EXPECT_EQ(server.ClaimEpoch({}, &pass), absl::FailedPreconditionError("ClaimEpoch"));
  EXPECT_EQ(server.CreateTables({}, &created), absl::InvalidArgumentError("CreateTables"));
  EXPECT_EQ(server.BeginPass({}, &pass), absl::FailedPreconditionError("BeginPass"));
  EXPECT_EQ(server.SealPass({}, &pass), absl::OutOfRangeError("SealPass"));
  v1::PreparePassReply prepared;
  EXPECT_EQ(server.PreparePass({}, &prepared), absl::InvalidArgumentError("PreparePass"));
  v1::DecideReply decided;
  EXPECT_EQ(server.Decide({}, &decided), absl::AlreadyExistsError("Decide"));
  EXPECT_EQ(server.CommitPass({}, &pass), absl::FailedPreconditionError("CommitPass"));
  EXPECT_EQ(server.AbortPass({}, &pass), absl::InternalError("AbortPass"));
  EXPECT_EQ(server.Save({}, &saved), absl::ResourceExhaustedError("Save"));
  EXPECT_EQ(server.Load({}, &loaded), absl::DataLossError("Load"));
  EXPECT_EQ(server.Clear({}, &pass), absl::InternalError("Clear"));
  EXPECT_EQ(server.Stats({}, &stats), absl::InternalError("Stats"));
  EXPECT_EQ(server.GetRow({}, &row), absl::NotFoundError("GetRow"));
}

TEST(ServerHost, ABusyControlVerbHoldsUpNoData) {
  absl::Notification open;
  Loopback loopback;
  loopback.control.hello_gate = &open;
  loopback.data.answer = [](FrameKind, Frame, absl::Duration, DataPlane::Done done) {
    done(DenseFrame(FrameKind::kPullDense, 5, true));
  };
  std::thread busy([&] {
    v1::HelloReply reply;
    EXPECT_EQ(loopback.server->Hello({}, &reply), absl::OkStatus());
  });
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(
        loopback.Call(FrameKind::kPullDense, DenseFrame(FrameKind::kPullDense, 5, false)).ok());
  }
  open.Notify();
  busy.join();
}

TEST(ServerHost, APortThatIsTakenIsRefusedWithWhatToDo) {
  Loopback loopback;
  const absl::Status status =
      ServerHost::Start("127.0.0.1", loopback.host->port(), &loopback.control, &loopback.data)
          .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("is taken"));
  EXPECT_EQ(
      ServerHost::Start("127.0.0.1", 65536, &loopback.control, &loopback.data).status().code(),
      absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ServerHost::Start("192.0.2.1", 0, &loopback.control, &loopback.data).status().code(),
            absl::StatusCode::kInvalidArgument);  // TEST-NET: no machine has it
}

}  // namespace
}  // namespace cistern
