// The control plane as a table, so that attacks can go through all of it: each verb with its
// messages by reflection.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/wire/planes.h"

namespace cistern {

struct Verb {
  std::string name;
  const google::protobuf::Message* request;  // an empty one
  const google::protobuf::Message* reply;
  absl::Status (*call)(ControlPlane&, const google::protobuf::Message&, google::protobuf::Message*);

  absl::Status Call(ControlPlane& plane, const google::protobuf::Message& in) const {
    const std::unique_ptr<google::protobuf::Message> out(reply->New());
    return call(plane, in, out.get());
  }
};

// In the order of CISTERN_CONTROL_METHODS.
const std::vector<Verb>& Verbs();
const Verb& VerbOf(const std::string& name);

// Sends `bytes` as a call of the data plane and waits for the answer: the error that the reply
// carries, or OK.
absl::Status CallData(DataPlane& plane, FrameKind kind, Frame request);

}  // namespace cistern
