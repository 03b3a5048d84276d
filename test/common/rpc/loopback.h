// Both planes, served by a host and called by a client in this process.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "common/rpc/remote_server.h"
#include "common/rpc/server_host.h"
#include "common/wire/call_peer.h"

namespace cistern {

// Every method fails with its own name, so that a test can see which one was called.
class NamingControl : public ControlPlane {
 public:
  absl::Status Hello(const v1::HelloRequest& request, v1::HelloReply* reply) override {
    if (request.client() != kProbe) ++hello_num;
    if (absl::Notification* const gate = hello_gate) gate->WaitForNotification();
    reply->set_cluster("to " + request.client());
    if (request.client() == "throw") throw std::runtime_error("a library");
    if (request.client() == "cancel") return absl::CancelledError();
    if (request.client() == "who") reply->set_cluster(CallPeer::Current());
    return absl::OkStatus();
  }
  absl::Status ClaimEpoch(const v1::ClaimEpochRequest& request, v1::PassReply*) override {
    {
      absl::MutexLock lock(&mutex);
      held_at_claim = begun;
    }
    if (request.identity().epoch() > 0 && !refuses_claims) return absl::OkStatus();
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
  absl::Status ReadState(const v1::ReadStateRequest&, v1::ReadStateReply*) override {
    return absl::NotFoundError("ReadState");
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
  absl::Status StoreManifest(const v1::StoreManifestRequest&, v1::StoreManifestReply*) override {
    return absl::AlreadyExistsError("StoreManifest");
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
  absl::Status Stats(const v1::StatsRequest& request, v1::StatsReply*) override {
    absl::Notification* const gate = digest_gate;
    if (request.digest() && gate != nullptr) gate->WaitForNotification();
    return absl::InternalError("Stats");
  }
  absl::Status GetRow(const v1::GetRowRequest&, v1::GetRowReply*) override {
    return absl::NotFoundError("GetRow");
  }
  absl::Status BeginHold(const v1::HoldTermRequest& request) override {
    absl::MutexLock lock(&mutex);
    begun.push_back(request.identity().epoch());
    return request.identity().epoch() == 0 ? absl::FailedPreconditionError("BeginHold")
                                           : absl::OkStatus();
  }
  void EndHold(const v1::HoldTermRequest& request) override {
    absl::MutexLock lock(&mutex);
    ended.push_back(request.identity().epoch());
  }
  int hellos() const { return hello_num; }  // not counting those of the health probe
  // Waits until BeginHold has been called for `epoch`.
  void AwaitBegun(uint64_t epoch) {
    const auto reached = [this, epoch]() ABSL_SHARED_LOCKS_REQUIRED(mutex) {
      return !begun.empty() && begun.back() == epoch;
    };
    absl::MutexLock lock(&mutex);
    mutex.Await(absl::Condition(&reached));
  }
  // Waits until EndHold has been called for these epochs.
  void AwaitEnded(const std::vector<uint64_t>& epochs) {
    const auto reached = [this, &epochs]()
                             ABSL_SHARED_LOCKS_REQUIRED(mutex) { return ended == epochs; };
    absl::MutexLock lock(&mutex);
    mutex.Await(absl::Condition(&reached));
  }

  std::atomic<absl::Notification*> hello_gate{nullptr}, digest_gate{nullptr};
  static constexpr char kProbe[] = "the health probe";
  std::atomic<int> hello_num{0};
  absl::Mutex mutex;
  std::vector<uint64_t> begun ABSL_GUARDED_BY(mutex), ended ABSL_GUARDED_BY(mutex);
  std::vector<uint64_t> held_at_claim ABSL_GUARDED_BY(mutex);  // `begun` at the last claim
  std::atomic<bool> refuses_claims{false};
};

// Returns the replies that the test sets.
class ScriptedData : public DataPlane {
 public:
  void Call(FrameKind kind, Frame request, absl::Duration timeout, Done done) override {
    answer(kind, std::move(request), timeout, std::move(done));
  }
  std::function<void(FrameKind, Frame, absl::Duration, Done)> answer;
};

struct Loopback {
  explicit Loopback(const RemoteOptions& options = {}, const HostOptions& host_options = {}) {
    absl::StatusOr<std::unique_ptr<ServerHost>> started =
        ServerHost::Start("127.0.0.1", 0, &control, &data, host_options);
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

inline Frame DenseFrame(FrameKind kind, uint32_t rows, bool body) {
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

inline std::string BytesOf(const Frame& frame) {
  std::string bytes(frame.size(), '\0');
  EXPECT_TRUE(FrameReader(frame).Read(bytes.data(), bytes.size()));
  return bytes;
}

}  // namespace cistern
