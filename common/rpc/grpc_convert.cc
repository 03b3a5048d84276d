#include "common/rpc/grpc_convert.h"

#include <google/protobuf/stubs/logging.h>
#include <grpc/support/log.h>

#include <cstdlib>
#include <memory>
#include <vector>

#include "common/base/log.h"

namespace cistern {

absl::Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), std::string(status.message()));
}

grpc::ByteBuffer ToByteBuffer(const Frame& frame) {
  using Owner = std::shared_ptr<const void>;
  std::vector<grpc::Slice> slices;
  slices.reserve(frame.pieces().size());
  for (const Frame::Piece& piece : frame.pieces()) {
    slices.emplace_back(
        const_cast<char*>(piece.data), piece.size,
        +[](void* owner) { delete static_cast<Owner*>(owner); }, new Owner(piece.owner));
  }
  return grpc::ByteBuffer(slices.data(), slices.size());
}

absl::StatusOr<Frame> FromByteBuffer(const grpc::ByteBuffer& buffer) {
  auto slices = std::make_shared<std::vector<grpc::Slice>>();
  if (buffer.Valid()) {
    const grpc::Status dumped = buffer.Dump(slices.get());
    if (!dumped.ok()) return FromGrpc(dumped);
  }
  Frame frame;
  for (const grpc::Slice& slice : *slices) {
    frame.Append({reinterpret_cast<const char*>(slice.begin()), slice.size(), slices});
  }
  return frame;
}

void QuietGrpcLog() {
#if GOOGLE_PROTOBUF_VERSION < 4022000  // later versions log through Abseil
  // Protocol Buffers prints a line for every text that is not UTF-8, which any stranger can send.
  google::protobuf::SetLogHandler(
      [](google::protobuf::LogLevel level, const char*, int, const std::string& message) {
        if (level == google::protobuf::LOGLEVEL_FATAL) LogError(message);
      });
#endif
  if (std::getenv("GRPC_VERBOSITY") != nullptr) return;
  gpr_set_log_verbosity(static_cast<gpr_log_severity>(GPR_LOG_SEVERITY_ERROR + 1));
}

}  // namespace cistern
