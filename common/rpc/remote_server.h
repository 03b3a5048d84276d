// One server of a fleet, reached over gRPC: both planes behind the plain interfaces.
//
// Made of one or more channels (TCP connections); data calls go round them, control calls use the
// first. Connecting is lazy: a server that is not there answers kUnavailable at the first call, and
// later calls try again. A peer that stops answering is noticed by keepalive within 20 seconds.
#pragma once

#include <memory>
#include <string>

#include "absl/time/time.h"
#include "common/rpc/planes.h"

namespace cistern {

struct RemoteOptions {
  absl::Duration call_timeout = absl::Seconds(60);
  // Of the control calls that read or write whole tables: prepare, commit, save, load, clear and
  // digests.
  absl::Duration long_call_timeout = absl::Hours(2);
  int channels = 1;
};

// Threads: any thread. `done` of a data call runs on one of gRPC's threads and must not block.
// The destructor waits for calls in flight.
class RemoteServer : public ControlPlane, public DataPlane {
 public:
  // address: "host:port", an IPv6 host in brackets.
  static std::unique_ptr<RemoteServer> Create(const std::string& address,
                                              const RemoteOptions& options);
  ~RemoteServer() override;

  ServerLink link() { return {address_, this, this}; }
  const std::string& address() const { return address_; }

  void Call(FrameKind kind, Frame request, absl::Duration timeout, Done done) override;

  absl::Status Hello(const v1::HelloRequest&, v1::HelloReply*) override;
  absl::Status ClaimEpoch(const v1::ClaimEpochRequest&, v1::PassReply*) override;
  absl::Status CreateTables(const v1::CreateTablesRequest&, v1::CreateTablesReply*) override;
  absl::Status BeginPass(const v1::PassRequest&, v1::PassReply*) override;
  absl::Status SealPass(const v1::SealPassRequest&, v1::PassReply*) override;
  absl::Status PreparePass(const v1::PassRequest&, v1::PassReply*) override;
  absl::Status CommitPass(const v1::PassRequest&, v1::PassReply*) override;
  absl::Status AbortPass(const v1::PassRequest&, v1::PassReply*) override;
  absl::Status Save(const v1::SaveRequest&, v1::SaveReply*) override;
  absl::Status Load(const v1::LoadRequest&, v1::LoadReply*) override;
  absl::Status Clear(const v1::ClearRequest&, v1::PassReply*) override;
  absl::Status Stats(const v1::StatsRequest&, v1::StatsReply*) override;
  absl::Status GetRow(const v1::GetRowRequest&, v1::GetRowReply*) override;

 private:
  struct Channels;  // what knows gRPC

  RemoteServer(const std::string& address, const RemoteOptions& options);

  const std::string address_;
  const RemoteOptions options_;
  std::unique_ptr<Channels> channels_;
};

}  // namespace cistern
