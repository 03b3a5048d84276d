// Conversions between gRPC's types and ours. Included only by code that speaks gRPC.
#pragma once

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/status.h>

#include "common/base/status.h"
#include "common/wire/frame.h"

namespace cistern {

// Convert a status. The numeric codes are the same on both sides; the message is kept. Kind, fix
// and options travel as v1.ErrorDetails in the status details, as long as they are short
// (kMaxDetailsBytes); what a peer sends that is not one is ignored.
absl::Status FromGrpc(const grpc::Status& status);
grpc::Status ToGrpc(const absl::Status& status);

// Convert without copying the bytes: slices and pieces keep each other's owner alive.
grpc::ByteBuffer ToByteBuffer(const Frame& frame);
// kInternal if gRPC cannot give the bytes (compressed with a codec that is not built in).
absl::StatusOr<Frame> FromByteBuffer(const grpc::ByteBuffer& buffer);

// Turns off gRPC's own messages on standard error, which repeat our errors, unless the environment
// sets GRPC_VERBOSITY.
void QuietGrpcLog();

}  // namespace cistern
