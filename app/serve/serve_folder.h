// Serves predictions from a folder over HTTP and gRPC (the Open Inference Protocol), as long as its
// caller wants.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "app/job_calls.h"
#include "app/serve/serve_options.h"
#include "common/base/status.h"

namespace cistern::app {

// What answers, from now on.
struct ServedFolder {
  std::string http, grpc;  // addresses, "127.0.0.1:8000"
  std::string model;       // its name
  uint64_t commit = 0;     // the version's
};

struct ServeCalls {
  // Requests are answered. Called from ServeFolder's thread, as `draining` is.
  std::function<void(const ServedFolder& served)> ready;
  // It was told to stop, and says for options.drain_seconds that it is not ready.
  std::function<void()> draining;
  // Set from any thread: ends it, after the requests in flight. Null: it never ends.
  const std::atomic<bool>* stop = nullptr;
};

// Waits for the folder's first version, answers until calls.stop is set, and follows newer versions
// meanwhile. What an operator should know goes to the log. Returns the commit that it served last;
// nullopt if it was stopped before it had a version.
//
// kInvalidArgument: options that do not fit (CheckServeOptions), or a folder in which no version
// will ever appear. kFailedPrecondition: a port is taken. kDataLoss: the only version is corrupt.
absl::StatusOr<std::optional<uint64_t>> ServeFolder(const ServeOptions& options,
                                                    const ServeCalls& calls);

// {"ready": true, "http", "grpc", "model", "commit"}
nlohmann::ordered_json JsonOf(const ServedFolder& served);

}  // namespace cistern::app
