// Several workers of one run: how worker 0's claims and commits become those of the others.
#include "proto/control_plane.pb.h"
#include "worker/client/parameter_client.h"

namespace cistern {

// Two messages one behind the other, the first with its length: what a server is told of a commit,
// and the newest manifest.
std::string ParameterClient::Writer::Pack() const {
  v1::CommitPassRequest state;
  state.mutable_identity()->set_epoch(epoch);
  state.set_pass(committed);
  *state.mutable_clock() = clock;
  const std::string first = state.SerializeAsString();
  const uint64_t bytes = first.size();
  return std::string(reinterpret_cast<const char*>(&bytes), sizeof(bytes)) + first +
         manifest.SerializeAsString();
}

absl::StatusOr<ParameterClient::Writer> ParameterClient::Writer::Unpack(const std::string& packed) {
  v1::CommitPassRequest state;
  Writer writer;
  uint64_t bytes = 0;
  const bool whole = packed.size() >= sizeof(bytes) &&
                     (packed.copy(reinterpret_cast<char*>(&bytes), sizeof(bytes)),
                      bytes <= packed.size() - sizeof(bytes)) &&
                     state.ParseFromString(packed.substr(sizeof(bytes), bytes)) &&
                     writer.manifest.ParseFromString(packed.substr(sizeof(bytes) + bytes));
  if (!whole) return absl::InternalError("worker 0 sent a state that cannot be read");
  writer.epoch = state.identity().epoch();
  writer.committed = state.pass();
  writer.clock = state.clock();
  return writer;
}

ParameterClient::Writer ParameterClient::writer() const {
  return {epoch_, committed_, clock_, manifest_};
}

void ParameterClient::Follow(const Writer& writer) {
  epoch_ = writer.epoch;
  committed_ = writer.committed;
  clock_ = writer.clock;
  manifest_ = writer.manifest;
  open_ = 0;
  changes_ = 0;
}

}  // namespace cistern
