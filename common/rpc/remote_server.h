// One server of a fleet, reached over gRPC: implements both planes.
//
// Uses one or more channels (TCP connections); data calls rotate over them, control calls use the
// first. Connecting is lazy: if the server is down, a call fails with kUnavailable, and later calls
// try again. Keepalive detects a peer that has stopped answering within 20 seconds.
//
// Before a claim, a HoldTerm call is opened, which stays open in the background while this object
// lives and is the writer; its end tells the server that the writer is gone. If the connection
// breaks, the call is opened again with the next connection, or at the latest by a PassRequest.
#pragma once

#include <memory>
#include <string>

#include "absl/time/time.h"
#include "common/tls/tls_files.h"
#include "common/trace/trace_file.h"
#include "common/wire/call_length.h"
#include "common/wire/planes.h"

namespace cistern {

struct ChannelSecurity;  // channel_security.h, which needs gRPC

struct RemoteOptions {
  absl::Duration call_timeout = absl::Seconds(60);
  // The deadline of control calls that read or write whole tables: prepare, commit, save, load,
  // clear and digests.
  absl::Duration long_call_timeout = absl::Hours(2);
  int channels = 1;
  // Certificates for TLS; null: plain text. Made by ConnectFleet from `tls`, or by SecureChannels.
  TlsFiles tls = {};
  std::shared_ptr<const ChannelSecurity> security = nullptr;
  // Receives every call; null: none. Outlives the server.
  TraceFile* trace = nullptr;
};

// Threads: any thread. `done` of a data call runs on one of gRPC's threads and must not block.
// The destructor waits for calls in flight.
class RemoteServer : public ControlPlane, public DataPlane {
 public:
  // address: "host:port", with an IPv6 host in brackets.
  static std::unique_ptr<RemoteServer> Create(const std::string& address,
                                              const RemoteOptions& options);
  ~RemoteServer() override;

  ServerLink link() { return {address_, this, this}; }
  const std::string& address() const { return address_; }

  void Call(FrameKind kind, Frame request, absl::Duration timeout, Done done) override;

#define CISTERN_METHOD(name, request, reply, length, effect, role) \
  absl::Status name(const v1::request&, v1::reply*) override;
  CISTERN_CONTROL_METHODS(CISTERN_METHOD)
#undef CISTERN_METHOD

 private:
  struct Channels;  // hides gRPC's types

  RemoteServer(const std::string& address, const RemoteOptions& options);
  absl::Duration TimeoutOf(CallLength length) const;
  // One call of the control plane, and what this object does besides.
  template <class Request, class Make>
  absl::Status Around(const Request&, absl::Duration, const Make& call) {
    return call();
  }
  template <class Make>
  absl::Status Around(const v1::ClaimEpochRequest&, absl::Duration timeout, const Make& call);
  template <class Make>
  absl::Status Around(const v1::PassRequest&, absl::Duration timeout, const Make& call);

  const std::string address_;
  const RemoteOptions options_;
  std::unique_ptr<Channels> channels_;
};

}  // namespace cistern
