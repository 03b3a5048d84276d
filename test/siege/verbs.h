// The control plane as a table, so that attacks can iterate over all of it: each verb with its
// messages, for reflection.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/base/role.h"
#include "common/wire/planes.h"

namespace cistern {

struct Verb {
  std::string name;
  const google::protobuf::Message* request;  // an empty one
  const google::protobuf::Message* reply;
  Role role;  // what a caller's certificate must give
  absl::Status (*call)(ControlPlane&, const google::protobuf::Message&, google::protobuf::Message*);

  absl::Status Call(ControlPlane& plane, const google::protobuf::Message& in) const {
    const std::unique_ptr<google::protobuf::Message> out(reply->New());
    return call(plane, in, out.get());
  }
};

// In the order of CISTERN_CONTROL_METHODS.
const std::vector<Verb>& Verbs();
const Verb& VerbOf(const std::string& name);

// Sends `request` as a data-plane call and waits for the reply: returns its error, or OK.
absl::Status CallData(DataPlane& plane, FrameKind kind, Frame request);

}  // namespace cistern
