// Classes of control calls: by how long they may take, which determines a call's deadline and the
// threads that run it; and by whether they change tables.
#pragma once

#include "proto/control_plane.pb.h"

namespace cistern {

enum class CallLength {
  kLook,    // reads memory only; health checks depend on these calls
  kShort,   // records something
  kCommit,  // advances a pass; its time grows with the staged rows
  kLong,    // its time grows with the tables
};

// Whether a call that throws can leave tables partly changed. Hello can: it makes a restarted
// server recover.
enum class CallEffect { kKeepsTables, kChangesTables };

// The length of this request to a method whose entry in control_methods.h has `length`.
template <class Request>
CallLength LengthOf(CallLength length, const Request&) {
  return length;
}
inline CallLength LengthOf(CallLength length, const v1::StatsRequest& request) {
  return request.digest() ? CallLength::kLong : length;
}

}  // namespace cistern
