#include "test/siege/verbs.h"

#include <future>

#include "common/base/check.h"

namespace cistern {
namespace {

constexpr absl::Duration kDataLimit = absl::Seconds(20);

}  // namespace

const std::vector<Verb>& Verbs() {
#define CISTERN_METHOD(verb, in_type, out_type, length, effect, role)                             \
  Verb{#verb, &v1::in_type::default_instance(), &v1::out_type::default_instance(), Role::role,    \
       [](ControlPlane& plane, const google::protobuf::Message& in,                               \
          google::protobuf::Message* out) {                                                       \
         return plane.verb(static_cast<const v1::in_type&>(in), static_cast<v1::out_type*>(out)); \
       }},
  static const std::vector<Verb> verbs = {CISTERN_CONTROL_METHODS(CISTERN_METHOD)};
#undef CISTERN_METHOD
  return verbs;
}

const Verb& VerbOf(const std::string& name) {
  for (const Verb& verb : Verbs()) {
    if (verb.name == name) return verb;
  }
  CISTERN_CHECK(false && "no such verb");
  return Verbs()[0];
}

absl::Status CallData(DataPlane& plane, FrameKind kind, Frame request) {
  std::promise<absl::Status> answered;
  plane.Call(kind, std::move(request), kDataLimit, [&](absl::StatusOr<Frame> reply) {
    answered.set_value(reply.ok() ? absl::OkStatus() : reply.status());
  });
  return answered.get_future().get();
}

}  // namespace cistern
