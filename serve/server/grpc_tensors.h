// The messages of proto/inference.proto to and from what both protocols share.
#pragma once

#include <google/protobuf/io/zero_copy_stream.h>

#include <cstdint>

#include "proto/inference.pb.h"
#include "serve/server/infer_call.h"
#include "serve/server/metadata.h"

namespace cistern::serve {

// The result borrows the elements of its tensors from `message`.
//
// kInvalidArgument if both raw and typed contents are present, their numbers do not fit the inputs,
// a typed content is not that of the data type, or there are more than kMaxTensors tensors.
absl::StatusOr<InferRequest> FromMessage(const inference::ModelInferRequest& message);

// raw: as raw_output_contents; else as typed contents.
inference::ModelInferResponse ToMessage(const InferReply& reply, bool raw);

inference::ServerMetadataResponse ToMessage(const ServerMetadata& server);
inference::ModelMetadataResponse ToMessage(const ModelMetadata& model);
inference::ModelConfigResponse ToConfigMessage(const ModelMetadata& model);

// An upper bound of the memory that parsing a ModelInferRequest of `bytes` takes, found without
// parsing: raw contents take what they are, but two bytes can be an empty tensor in a list.
uint64_t MemoryOfRequest(google::protobuf::io::ZeroCopyInputStream* wire, uint64_t bytes);

}  // namespace cistern::serve
