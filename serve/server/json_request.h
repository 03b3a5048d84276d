// The body of an infer request over HTTP: JSON, and after it the bytes of binary tensors.
#pragma once

#include <optional>

#include "absl/strings/string_view.h"
#include "serve/server/infer_call.h"

namespace cistern::serve {

// Decodes a body. The result borrows the bytes of its binary tensors from it.
//
// json_bytes: the header Inference-Header-Content-Length; without it the whole body is JSON. The
// rest of the body belongs to the tensors with the parameter binary_data_size, in their order.
//
// kInvalidArgument for text that is not JSON, an unknown field, a value of the wrong kind, a
// parameter that asks for what this server does not do (CheckParameter), more than kMaxTensors
// tensors, a tensor with neither or both kinds of data, and binary sizes that do not add up to the
// rest of the body. The text is read as a stream: memory is bounded by 16 times its length,
// whatever it says.
absl::StatusOr<InferRequest> DecodeJsonRequest(absl::string_view body,
                                               std::optional<size_t> json_bytes);

}  // namespace cistern::serve
