#include "common/rpc/grpc_convert.h"

#include <google/protobuf/stubs/logging.h>
#include <grpc/support/log.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/log.h"
#include "proto/control_plane.pb.h"

namespace cistern {
namespace {

// Trailers are bounded (8 KiB by default), and a message that does not fit would be lost with its
// details.
constexpr size_t kMaxDetailsBytes = 2048;

std::string DetailsOf(const absl::Status& status) {
  v1::ErrorDetails details;
  details.set_kind(static_cast<uint32_t>(KindOf(status)));
  details.set_fix(FixOf(status));
  for (const std::string& option : OptionsOf(status)) details.add_options(option);
  std::string bytes = details.SerializeAsString();
  return bytes.size() <= kMaxDetailsBytes ? bytes : "";
}

absl::Status WithDetails(absl::Status status, const std::string& bytes) {
  v1::ErrorDetails details;
  if (bytes.empty() || bytes.size() > kMaxDetailsBytes || !details.ParseFromString(bytes))
    return status;
  if (details.kind() > 0 && details.kind() <= 0xFF) {
    status = WithKind(std::move(status), static_cast<ErrorKind>(details.kind()));
  }
  status = WithFix(std::move(status), details.fix());
  if (details.options().empty()) return status;
  return WithOptions(std::move(status), {details.options().begin(), details.options().end()});
}

}  // namespace

absl::Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  return WithDetails(
      absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message()),
      status.error_details());
}

grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), std::string(status.message()),
                      DetailsOf(status));
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
