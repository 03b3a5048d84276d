#include "common/rpc/grpc_convert.h"

#include <gtest/gtest.h>

#include "proto/control_plane.pb.h"

namespace cistern {
namespace {

std::string WireBytes(const Frame& frame) {
  std::string bytes(frame.size(), '\0');
  EXPECT_TRUE(FrameReader(frame).Read(bytes.data(), bytes.size()));
  return bytes;
}

TEST(GrpcStatus, KeepsEveryCodeAndTheMessage) {
  EXPECT_TRUE(FromGrpc(ToGrpc(absl::OkStatus())).ok());
  for (int code = 1; code <= 16; ++code) {
    const absl::Status status(static_cast<absl::StatusCode>(code), absl::StrCat("error ", code));
    EXPECT_EQ(ToGrpc(status).error_code(), code);
    EXPECT_EQ(FromGrpc(ToGrpc(status)), status);
  }
}

TEST(GrpcStatus, CarriesKindFixAndOptions) {
  const absl::Status sent = WithOptions(
      WithFix(WithKind(absl::FailedPreconditionError("other tables"), ErrorKind::kOtherSchema),
              "name another folder"),
      {"key_bits", "cistern-server.data_dir"});
  EXPECT_EQ(FromGrpc(ToGrpc(sent)), sent);
}

TEST(GrpcStatus, IsDeliveredWithoutDetailsThatAreTooLongForTrailers) {
  const absl::Status sent = WithFix(absl::InternalError("broken"), std::string(5000, 'x'));
  EXPECT_EQ(FromGrpc(ToGrpc(sent)), absl::InternalError("broken"));
}

TEST(GrpcStatus, IgnoresDetailsOfAnotherKind) {
  const grpc::StatusCode code = grpc::StatusCode::NOT_FOUND;
  const absl::Status plain = absl::NotFoundError("gone");
  EXPECT_EQ(FromGrpc(grpc::Status(code, "gone", "\xff\xff not a message")), plain);
  EXPECT_EQ(FromGrpc(grpc::Status(code, "gone", std::string(5000, 'x'))), plain);
  v1::ErrorDetails later;
  later.set_kind(200);
  const absl::Status received = FromGrpc(grpc::Status(code, "gone", later.SerializeAsString()));
  EXPECT_EQ(KindOf(received), ErrorKind::kNone);
  EXPECT_EQ(received.message(), "gone");
}

TEST(GrpcBytes, EqualTheBytesOfTheFrame) {
  Frame frame;
  std::string expected;
  for (size_t size : {1, 3, 96, 5000, 300'000}) {
    const std::string piece(size, static_cast<char>('a' + size % 26));
    frame.AppendBytes(piece.data(), piece.size());
    expected += piece;
  }
  absl::StatusOr<Frame> back = FromByteBuffer(ToByteBuffer(frame));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(WireBytes(*back), expected);
  EXPECT_EQ(FromByteBuffer(ToByteBuffer(Frame()))->size(), 0u);
  EXPECT_EQ(FromByteBuffer(grpc::ByteBuffer())->size(), 0u);
}

TEST(GrpcBytes, AreSharedNotCopiedAndLiveAsLongAsTheirLastUser) {
  std::weak_ptr<const std::string> watch;
  const char* data = nullptr;
  Frame back;
  {
    // Longer than the bytes that gRPC stores inside a slice.
    auto owner = std::make_shared<const std::string>(1000, 'x');
    watch = owner;
    data = owner->data();
    Frame frame;
    frame.Append({owner->data(), owner->size(), owner});
    back = *FromByteBuffer(ToByteBuffer(frame));
  }
  ASSERT_EQ(back.pieces().size(), 1u);
  EXPECT_EQ(back.pieces()[0].data, data);
  EXPECT_FALSE(watch.expired());
  back = Frame();
  EXPECT_TRUE(watch.expired());
}

}  // namespace
}  // namespace cistern
