// The body of an infer reply over HTTP: JSON, and after it the bytes of binary tensors.
#pragma once

#include <optional>
#include <string>

#include "serve/server/infer_call.h"

namespace cistern::serve {

struct JsonReply {
  std::string body;
  // The header Inference-Header-Content-Length: where the JSON ends, if anything follows.
  std::optional<size_t> json_bytes;
};

JsonReply EncodeJsonReply(const InferReply& reply);

// {"error":"..."}.
std::string ErrorJson(absl::string_view message);

}  // namespace cistern::serve
