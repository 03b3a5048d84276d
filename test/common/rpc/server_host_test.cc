// Both planes over a real connection of this process to itself.
#include "common/rpc/server_host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "common/base/host_address.h"
#include "test/common/rpc/loopback.h"

namespace cistern {
namespace {

using testing::HasSubstr;

TEST(ServerHost, DataArrivesUnchangedInBothDirections) {
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
  EXPECT_TRUE(BytesOf(*pulled) == BytesOf(WithBodyHash(reply)));  // the host adds the hash
  EXPECT_TRUE(loopback.Call(FrameKind::kPushDense, request).ok());
}

TEST(ServerHost, EveryFrameKindReachesThePlaneUnchanged) {
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

TEST(ServerHost, RepliesMayComeFromAnotherThread) {
  std::thread later;
  Loopback loopback;
  loopback.data.answer = [&](FrameKind, Frame, absl::Duration, DataPlane::Done done) {
    later = std::thread([done] { done(DenseFrame(FrameKind::kPullDense, 5, true)); });
  };
  EXPECT_TRUE(
      loopback.Call(FrameKind::kPullDense, DenseFrame(FrameKind::kPullDense, 5, false)).ok());
  later.join();
}

TEST(ServerHost, RequestsThatAreNotFramesGetAReply) {
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
    EXPECT_LT(timeout, absl::Seconds(10));  // the deadline is transferred, rounded
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
  held(absl::InternalError("too late"));  // the client no longer waits

  loopback.control.hello_gate = &open;
  v1::HelloReply reply;
  EXPECT_EQ(loopback.server->Hello({}, &reply).code(), absl::StatusCode::kDeadlineExceeded);
  open.Notify();
}

TEST(RemoteServer, ServerThatIsDownIsUnavailable) {
  Loopback loopback;
  loopback.host->Stop(absl::ZeroDuration());
  v1::HelloReply reply;
  EXPECT_EQ(loopback.server->Hello({}, &reply).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(loopback.Call(FrameKind::kPull, DenseFrame(FrameKind::kPull, 0, false)).status().code(),
            absl::StatusCode::kUnavailable);
}

TEST(RemoteServer, EveryControlMethodReachesItsCounterpart) {
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

TEST(ServerHost, BusyControlMethodDoesNotDelayDataCalls) {
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

TEST(ServerHost, TakenPortIsRefusedWithAFix) {
  Loopback loopback;
  const absl::Status status =
      ServerHost::Start("127.0.0.1", loopback.host->port(), &loopback.control, &loopback.data)
          .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("is taken"));
  EXPECT_EQ(
      ServerHost::Start("127.0.0.1", 65536, &loopback.control, &loopback.data).status().code(),
      absl::StatusCode::kInvalidArgument);
  // TEST-NET: no machine has this address; a real one may come up later.
  EXPECT_EQ(ServerHost::Start("192.0.2.1", 0, &loopback.control, &loopback.data).status().code(),
            absl::StatusCode::kUnavailable);
}

TEST(ServerHost, HostNamesWithSeveralAddressesAreServed) {
  Loopback loopback;
  for (const char* name : {"0.0.0.0", "localhost"}) {
    if (!WhyUnknown(name).empty()) GTEST_SKIP() << name << ": " << WhyUnknown(name);
    absl::StatusOr<std::unique_ptr<ServerHost>> host =
        ServerHost::Start(name, 0, &loopback.control, &loopback.data);
    ASSERT_TRUE(host.ok()) << host.status();
    const auto server = RemoteServer::Create(absl::StrCat("127.0.0.1:", (*host)->port()), {});
    v1::HelloReply reply;
    EXPECT_EQ(server->Hello({}, &reply), absl::OkStatus()) << name;
  }
}

TEST(ServerHost, WaitingLongCallsDoNotDelayHello) {
  absl::Notification open;
  Loopback loopback;
  loopback.control.digest_gate = &open;
  std::vector<std::thread> digests;
  for (int i = 0; i < 16; ++i) {  // more than there are threads
    digests.emplace_back([&] {
      v1::StatsRequest request;
      request.set_digest(true);
      v1::StatsReply reply;
      EXPECT_EQ(loopback.server->Stats(request, &reply), absl::InternalError("Stats"));
    });
  }
  v1::HelloReply hello;
  v1::StatsReply stats;
  v1::PassReply pass;
  EXPECT_EQ(loopback.server->Hello({}, &hello), absl::OkStatus());
  EXPECT_EQ(loopback.server->Stats({}, &stats), absl::InternalError("Stats"));
  EXPECT_EQ(loopback.server->AbortPass({}, &pass), absl::InternalError("AbortPass"));
  EXPECT_EQ(loopback.server->CommitPass({}, &pass), absl::FailedPreconditionError("CommitPass"));
  open.Notify();
  for (std::thread& digest : digests) digest.join();
}

TEST(ServerHost, StopDoesNotWaitForCallsThatDoNotEnd) {
  absl::Notification open;
  Loopback loopback;
  loopback.control.hello_gate = &open;
  std::thread stuck([&] {
    v1::HelloReply reply;
    EXPECT_EQ(loopback.server->Hello({}, &reply).code(), absl::StatusCode::kUnavailable);
  });
  while (loopback.control.hellos() < 1) std::this_thread::yield();
  EXPECT_FALSE(loopback.host->Stop(absl::Milliseconds(10)));
  stuck.join();  // cancelled
  open.Notify();
  EXPECT_TRUE(loopback.host->Stop(absl::InfiniteDuration()));
}

// gRPC cancels a call whose reply is on its way while the server stops.
TEST(RemoteServer, ACallThatTheServerCancelsIsUnavailable) {
  Loopback loopback;
  v1::HelloRequest request;
  request.set_client("cancel");
  v1::HelloReply reply;
  const absl::Status status = loopback.server->Hello(request, &reply);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("the server stopped during the call"));
}

TEST(ServerHost, ExceptionOfAHandlerBecomesAStatus) {
  Loopback loopback;
  v1::HelloRequest request;
  request.set_client("throw");
  v1::HelloReply reply;
  const absl::Status status = loopback.server->Hello(request, &reply);
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), HasSubstr("a library"));
  loopback.data.answer = [](FrameKind, Frame, absl::Duration, DataPlane::Done) {
    throw std::bad_alloc();
  };
  EXPECT_EQ(loopback.Call(FrameKind::kPull, DenseFrame(FrameKind::kPull, 0, false)).status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST(ServerHost, HandlersKnowTheirPeer) {
  Loopback loopback;
  v1::HelloRequest request;
  request.set_client("who");
  v1::HelloReply reply;
  ASSERT_EQ(loopback.server->Hello(request, &reply), absl::OkStatus());
  EXPECT_THAT(reply.cluster(), HasSubstr("ipv4:127.0.0.1:"));
  std::string peer;
  loopback.data.answer = [&](FrameKind, Frame, absl::Duration, DataPlane::Done done) {
    peer = CallPeer::Current();
    done(absl::InternalError(""));
  };
  EXPECT_FALSE(loopback.Call(FrameKind::kPull, DenseFrame(FrameKind::kPull, 0, false)).ok());
  EXPECT_THAT(peer, HasSubstr("ipv4:127.0.0.1:"));
}

TEST(HoldTerm, StaysOpenUntilTheNextClaimOrTheEndOfTheClient) {
  Loopback loopback;
  v1::ClaimEpochRequest claim;
  v1::PassReply reply;
  for (const uint64_t epoch : {1, 2}) {
    claim.mutable_identity()->set_epoch(epoch);
    ASSERT_EQ(loopback.server->ClaimEpoch(claim, &reply), absl::OkStatus());
    loopback.control.AwaitBegun(epoch);
  }
  loopback.control.AwaitEnded({1});
  loopback.server = nullptr;
  loopback.control.AwaitEnded({1, 2});
}

// A server would count a caller that it grants a claim, and that was killed, as at work.
TEST(HoldTerm, OpensBeforeTheClaimAndEndsIfItIsRefused) {
  Loopback loopback;
  v1::ClaimEpochRequest claim;
  claim.mutable_identity()->set_epoch(1);
  v1::PassReply reply;
  ASSERT_EQ(loopback.server->ClaimEpoch(claim, &reply), absl::OkStatus());
  loopback.control.refuses_claims = true;
  claim.mutable_identity()->set_epoch(2);
  EXPECT_FALSE(loopback.server->ClaimEpoch(claim, &reply).ok());
  {
    absl::MutexLock lock(&loopback.control.mutex);
    EXPECT_THAT(loopback.control.held_at_claim, testing::ElementsAre(1, 2));
  }
  loopback.control.AwaitEnded({2});  // and not that of the claim before
}

TEST(HoldTerm, EndsOnceWithTheServer) {
  Loopback loopback;
  v1::ClaimEpochRequest claim;
  claim.mutable_identity()->set_epoch(7);
  v1::PassReply reply;
  ASSERT_EQ(loopback.server->ClaimEpoch(claim, &reply), absl::OkStatus());
  loopback.control.AwaitBegun(7);
  EXPECT_TRUE(loopback.host->Stop(absl::InfiniteDuration()));  // does not wait for the writer
  loopback.server = nullptr;
  loopback.host = nullptr;
  loopback.control.AwaitEnded({7});
}

TEST(RemoteServer, IgnoresProxiesOfTheEnvironment) {
  setenv("http_proxy", "http://127.0.0.1:1", 1);  // nobody listens there
  setenv("grpc_proxy", "http://127.0.0.1:1", 1);
  Loopback loopback;
  const auto server =
      RemoteServer::Create(absl::StrCat("127.0.0.1:", loopback.host->port()), RemoteOptions());
  v1::HelloReply reply;
  EXPECT_EQ(server->Hello({}, &reply), absl::OkStatus());
  unsetenv("http_proxy");
  unsetenv("grpc_proxy");
}

}  // namespace
}  // namespace cistern
