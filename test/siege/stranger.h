// Someone on the network who has no part in the training: what he learns by asking, and the
// requests that he can make of it. He has all identities right and does not know the writer's
// secret.
#pragma once

#include <memory>
#include <string>

#include "common/rpc/remote_server.h"
#include "test/siege/verbs.h"

namespace cistern {

// Threads: one at a time; a thread has its own.
class Stranger {
 public:
  // address: of one server, "host:port".
  explicit Stranger(const std::string& address);

  // Asks Hello and GetManifest again. An error leaves what was known.
  absl::Status Look();
  const v1::HelloReply& hello() const { return hello_; }

  ControlPlane& control() { return *server_; }
  DataPlane& data() { return *server_; }
  const std::string& address() const { return server_->address(); }

  // A request that the writer itself could send now, but for its secret.
  std::unique_ptr<google::protobuf::Message> RequestOf(const Verb& verb) const;
  // The manifest that would be decided next, if its files were those of the newest.
  v1::Manifest NextManifest() const;
  // A frame that the writer could send, for one row of the first sparse or dense table.
  FrameHeader HeaderOf(FrameKind kind) const;
  // Its body: as many bytes as the header asks for, and their hash in the header.
  std::string BodyOf(FrameHeader* header) const;

 private:
  std::unique_ptr<RemoteServer> server_;
  v1::HelloReply hello_;
  v1::GetManifestReply newest_;
};

// Whether a stranger may have this answered with OK: it only looks, or adds a file of its own, or
// changes nothing.
bool MayBeGranted(const Stranger& stranger, const Verb& verb,
                  const google::protobuf::Message& request);

// Whether an answer is one that the server means to give: no crash of a handler, no silence.
bool IsMeant(const absl::Status& answer);

// Whether the server answers Hello within `limit`, however often it has to be asked.
bool AnswersHello(const std::string& address, absl::Duration limit);

}  // namespace cistern
