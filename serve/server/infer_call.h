// A prediction as both protocols mean it: the decoded request, and the reply to encode.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/base/status.h"
#include "serve/server/tensor.h"

namespace cistern::serve {

// At most this many inputs or requested outputs, so that a short message cannot become a large one.
inline constexpr size_t kMaxTensors = 4096;

struct InferRequest {
  struct Output {
    std::string name;
    std::optional<bool> binary;  // HTTP: asks for, or against, the binary extension
  };

  std::string model;    // empty: the one that is served
  std::string version;  // a commit number; empty: the one that is served
  std::string id;       // comes back in the reply
  std::vector<InferTensor> inputs;
  std::vector<Output> outputs;  // none: those that need not be asked for
  bool binary_outputs = false;  // HTTP: for outputs that do not say
  uint64_t timeout_us = 0;      // since the request arrived; 0: none
};

struct InferReply {
  std::string model, id;
  uint64_t commit = 0;  // the one that made every prediction
  std::vector<InferTensor> outputs;
  std::vector<bool> binary;  // of each output, for HTTP
};

// kInvalidArgument if the parameter `name` asks for what this server does not do: shared memory,
// classes instead of numbers, sequences, priorities, responses in parts. Parameters of other names
// are hints. owner: "the request", "tensor 'x'". has_no_effect: the value is 0, false or empty.
absl::Status CheckParameter(absl::string_view owner, absl::string_view name, bool has_no_effect);

}  // namespace cistern::serve
