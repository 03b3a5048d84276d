// Reads the figures of another process, as Prometheus would.
#pragma once

#include <string>

#include "absl/time/time.h"
#include "common/base/status.h"

namespace cistern {

// The text at /metrics of a place: "127.0.0.1:9700", also with http:// before and /metrics after
// it, or the path of a Unix socket, which has a slash.
//
// kInvalidArgument: neither. kUnavailable: nobody answers there. kDeadlineExceeded: the answer does
// not end within `timeout`. kFailedPrecondition: the answer is no page of figures, or has more than
// 16 MiB.
absl::StatusOr<std::string> ReadMetricsPage(const std::string& place, absl::Duration timeout);

}  // namespace cistern
