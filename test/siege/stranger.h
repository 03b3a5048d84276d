// An attacker on the network: reads what servers tell everyone, and forges requests from it. All
// identities in its requests are correct, but it does not know the writer's secret.
#pragma once

#include <memory>
#include <string>

#include "common/rpc/remote_server.h"
#include "test/siege/verbs.h"

namespace cistern {

// Threads: one at a time; each thread needs its own object.
class Stranger {
 public:
  // address: of one server, "host:port".
  explicit Stranger(const std::string& address);
  Stranger(const std::string& address, const RemoteOptions& options);

  // Calls Hello and GetManifest again. After an error the earlier replies stay.
  absl::Status Look();
  const v1::HelloReply& hello() const { return hello_; }

  ControlPlane& control() { return *server_; }
  DataPlane& data() { return *server_; }
  const std::string& address() const { return server_->address(); }

  // A request that the writer itself could send now, except for its secret.
  std::unique_ptr<google::protobuf::Message> RequestOf(const Verb& verb) const;
  // The manifest of the next commit, with the files of the newest one.
  v1::Manifest NextManifest() const;
  // A frame that the writer could send, for one row of the first sparse or dense table.
  FrameHeader HeaderOf(FrameKind kind) const;
  // A body of the size that the header requires; puts its hash into the header.
  std::string BodyOf(FrameHeader* header) const;

 private:
  std::unique_ptr<RemoteServer> server_;
  v1::HelloReply hello_;
  v1::GetManifestReply newest_;
};

// Whether a stranger's request may be granted: it changes nothing, or adds a file of its own.
bool MayBeGranted(const Stranger& stranger, const Verb& verb,
                  const google::protobuf::Message& request);

// Whether an answer is deliberate: not the crash of a handler, not a timeout.
bool IsMeant(const absl::Status& answer);

// Whether the server answers Hello within `limit`, with any number of retries.
bool AnswersHello(const std::string& address, absl::Duration limit);

}  // namespace cistern
