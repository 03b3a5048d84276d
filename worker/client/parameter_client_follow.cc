// ParameterClient: how the other workers of a run follow worker 0's claims and commits.
#include "proto/control_plane.pb.h"
#include "worker/client/backoff.h"
#include "worker/client/parameter_client.h"

namespace cistern {

// Two messages in sequence: a CommitPassRequest, preceded by its length (8 bytes), and the newest
// manifest.
std::string ParameterClient::Writer::Pack() const {
  v1::CommitPassRequest state;
  state.mutable_identity()->set_epoch(epoch);
  state.mutable_identity()->set_secret(secret);
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
  if (!whole) return absl::InternalError("worker 0 sent a writer state that cannot be parsed");
  writer.epoch = state.identity().epoch();
  writer.secret = state.identity().secret();
  writer.committed = state.pass();
  writer.clock = state.clock();
  return writer;
}

ParameterClient::Writer ParameterClient::writer() const {
  return {epoch_, secret_, committed_, clock_, manifest_};
}

void ParameterClient::Follow(const Writer& writer) {
  epoch_ = writer.epoch;
  secret_ = writer.secret;
  committed_ = writer.committed;
  clock_ = writer.clock;
  manifest_ = writer.manifest;
  open_ = 0;
  changes_ = 0;
}

absl::Status ParameterClient::StoreRunSecret(const std::string& address, uint64_t secret) {
  return Meet(address, secret).status();
}

absl::StatusOr<uint64_t> ParameterClient::RunSecret(const std::string& address) {
  return Meet(address, 0);
}

absl::StatusOr<uint64_t> ParameterClient::Meet(const std::string& address, uint64_t secret) {
  v1::MeetRequest request;
  *request.mutable_identity() = identity();
  request.set_address(address);
  request.set_secret(secret);
  v1::MeetReply reply;
  CISTERN_RETURN_IF_ERROR(
      AddContext(WithRetry(options_.retry_limit, options_.worker,
                           [&] { return servers_[0].control->Meet(request, &reply); }),
                 ServerName(0, servers_[0])));
  return reply.secret();
}

}  // namespace cistern
