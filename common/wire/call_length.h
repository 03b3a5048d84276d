// How long a control call may take: what its deadline and the threads that run it depend on.
#pragma once

#include "proto/control_plane.pb.h"

namespace cistern {

enum class CallLength {
  kLook,    // reads what is in memory: health depends on these
  kShort,   // notes something
  kCommit,  // moves a pass on; its time grows with what was staged
  kLong,    // its time grows with the tables
};

// The length of a method that control_methods.h gives `length`, for this request.
template <class Request>
CallLength LengthOf(CallLength length, const Request&) {
  return length;
}
inline CallLength LengthOf(CallLength length, const v1::StatsRequest& request) {
  return request.digest() ? CallLength::kLong : length;
}

}  // namespace cistern
