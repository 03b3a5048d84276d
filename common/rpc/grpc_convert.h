// Between gRPC's types and ours: the one place where they meet. Included by .cc files of this
// folder only.
#pragma once

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/status.h>

#include "common/base/status.h"
#include "common/wire/frame.h"

namespace cistern {

// The codes are the same numbers on both sides; the message is kept.
absl::Status FromGrpc(const grpc::Status& status);
grpc::Status ToGrpc(const absl::Status& status);

// The same bytes, not copied: slices and pieces keep each other's owner alive.
grpc::ByteBuffer ToByteBuffer(const Frame& frame);
// kInternal if gRPC cannot give the bytes (compressed with a codec that is not built in).
absl::StatusOr<Frame> FromByteBuffer(const grpc::ByteBuffer& buffer);

// gRPC's own lines on standard error say what our errors say again; they are off unless the
// environment sets GRPC_VERBOSITY.
void QuietGrpcLog();

}  // namespace cistern
