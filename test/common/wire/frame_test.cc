#include "common/wire/frame.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace cistern {
namespace {

// A push of 3 keys with stride 2: 96 + 3*8 + 3*2*4 + 3 = 147 bytes.
FrameHeader PushHeader() {
  FrameHeader header;
  header.kind = static_cast<uint16_t>(FrameKind::kPush);
  header.count = 3;
  header.stride = 2;
  return header;
}

Frame PushFrame() {
  Frame frame = StartFrame(PushHeader());
  const uint64_t keys[3] = {1, 2, 3};
  const float values[6] = {1, 2, 3, 4, 5, 6};
  const uint8_t has_embedx[3] = {1, 1, 0};
  frame.AppendBytes(keys, sizeof(keys));
  frame.AppendBytes(values, sizeof(values));
  frame.AppendBytes(has_embedx, sizeof(has_embedx));
  return frame;
}

std::string BytesOf(const Frame& frame) {
  std::string bytes(frame.size(), '\0');
  EXPECT_TRUE(FrameReader(frame).Read(bytes.data(), bytes.size()));
  return bytes;
}

// The same bytes in pieces of `size`, as a network would deliver them.
Frame InPieces(const std::string& bytes, size_t size) {
  Frame frame;
  for (size_t i = 0; i < bytes.size(); i += size) {
    frame.AppendBytes(bytes.data() + i, std::min(size, bytes.size() - i));
  }
  return frame;
}

// Values that a receiver keeps: shared where they lie in one piece of plain memory, else copied.
TEST(FrameReader, ArraysAreSharedOnlyWithKeepableMemory) {
  const std::string bytes = BytesOf(PushFrame());
  for (const size_t size : {size_t{5}, size_t{100}, bytes.size()}) {
    for (const bool keepable : {true, false}) {
      const Frame cut = InPieces(bytes, size);
      Frame frame;
      for (Frame::Piece piece : cut.pieces()) {
        piece.keepable = keepable;
        frame.Append(std::move(piece));
      }
      FrameReader reader(frame);
      ASSERT_TRUE(ReadHeader(reader, FrameKind::kPush, /*reply=*/false).ok());
      const SharedArray<uint64_t> keys = reader.TakeArray<uint64_t>(3);
      const SharedArray<float> values = reader.TakeArray<float>(6);
      const SharedArray<uint8_t> has_embedx = reader.TakeArray<uint8_t>(3);
      EXPECT_EQ(reader.left(), 0u);
      const char* begin = frame.pieces()[0].data;
      const auto* at = reinterpret_cast<const char*>(values.data());
      const bool shared = begin <= at && at < begin + frame.pieces()[0].size;
      EXPECT_EQ(shared, keepable && size == bytes.size()) << size;
      frame = Frame();  // the arrays outlive it
      EXPECT_EQ(std::vector<uint64_t>(keys.begin(), keys.end()), (std::vector<uint64_t>{1, 2, 3}));
      EXPECT_EQ(std::vector<float>(values.begin(), values.end()),
                (std::vector<float>{1, 2, 3, 4, 5, 6}));
      EXPECT_EQ(std::vector<uint8_t>(has_embedx.begin(), has_embedx.end()),
                (std::vector<uint8_t>{1, 1, 0}));
    }
  }
}

TEST(FrameHeader, HasTheDocumentedBytes) {
  FrameHeader header;
  header.kind = 2;
  header.status = 3;
  header.cluster_id = 0x0807060504030201;
  header.schema_hash = 0x1817161514131211;
  header.shard_map_hash = 0x2827262524232221;
  header.term = 5;
  header.pass = 6;
  header.sequence = 7;
  header.worker = 8;
  header.table = 9;
  header.count = 10;
  header.stride = 11;
  header.start = 12;
  header.flags = 1;
  header.shard = 13;
  header.body_hash = 0x3837363534333231;
  const unsigned char golden[96] = {'C',  'S',  'F',  '1',  2,    0,    3,    0,      // 0
                                    0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08,   // 8
                                    0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18,   // 16
                                    0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28,   // 24
                                    5,    0,    0,    0,    0,    0,    0,    0,      // 32
                                    6,    0,    0,    0,    0,    0,    0,    0,      // 40
                                    7,    0,    0,    0,    0,    0,    0,    0,      // 48
                                    8,    0,    0,    0,    9,    0,    0,    0,      // 56
                                    10,   0,    0,    0,    11,   0,    0,    0,      // 64
                                    12,   0,    0,    0,    0,    0,    0,    0,      // 72
                                    1,    0,    0,    0,    13,   0,    0,    0,      // 80
                                    0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38};  // 88
  EXPECT_EQ(BytesOf(StartFrame(header)),
            std::string(reinterpret_cast<const char*>(golden), sizeof(golden)));
}

TEST(Frame, BuffersAreAlignedForAnyArray) {
  Frame frame;
  for (size_t size : {1, 3, 8, 96, 1000}) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(frame.AppendBuffer(size)) % 8, 0u) << size;
  }
  EXPECT_EQ(frame.size(), 1108u);
}

TEST(Frame, KeepsItsBytesAliveInCopies) {
  Frame copy;
  {
    Frame frame(std::string("hello "));
    frame.AppendBytes("world", 5);
    copy = frame;
  }
  EXPECT_EQ(BytesOf(copy), "hello world");
}

TEST(FrameReader, ReadsAcrossPiecesOfEverySize) {
  const std::string bytes = BytesOf(PushFrame());
  for (size_t size = 1; size <= bytes.size(); ++size) {
    const Frame frame = InPieces(bytes, size);
    FrameReader reader(frame);
    absl::StatusOr<FrameHeader> header = ReadHeader(reader, FrameKind::kPush, false);
    ASSERT_TRUE(header.ok()) << header.status();
    std::string body(51, '\0');
    ASSERT_TRUE(reader.Read(body.data(), 20));
    ASSERT_TRUE(reader.Read(body.data() + 20, 31));
    EXPECT_EQ(body, bytes.substr(96));
    EXPECT_EQ(reader.left(), 0u);
    EXPECT_FALSE(reader.Read(body.data(), 1));
  }
}

TEST(FrameReader, ConsumesNothingIfTooFewBytesAreLeft) {
  const Frame frame = InPieces("abcdef", 2);
  FrameReader reader(frame);
  char out[8];
  EXPECT_FALSE(reader.Read(out, 7));
  EXPECT_EQ(reader.left(), 6u);
  ASSERT_TRUE(reader.Read(out, 6));
  EXPECT_EQ(std::string(out, 6), "abcdef");
}

TEST(BodyHash, DiffersForEverySecret) {
  const Frame frame = InPieces(std::string(sizeof(FrameHeader) + 1000, 'x'), 100);
  EXPECT_EQ(BodyHash(frame, 0), BodyHash(frame));
  EXPECT_NE(BodyHash(frame, 1), BodyHash(frame));
  EXPECT_NE(BodyHash(frame, 1), BodyHash(frame, 2));
}

TEST(BodyHash, IsXxh3OfTheBodyForAnyPieces) {
  // Expected value: xxhsum -H3 of the 51 bytes of the body.
  const std::string bytes = BytesOf(PushFrame());
  const uint64_t whole = 0xCAA95E489C861CA6ull;
  for (size_t size : {1, 7, 95, 96, 97, 200}) {
    EXPECT_EQ(BodyHash(InPieces(bytes, size)), whole) << size;
  }
  EXPECT_EQ(BodyHash(StartFrame(PushHeader())), 0x2D06800538D394C2ull);  // XXH3 of no bytes
}

TEST(ReadHeader, RefusesEveryTruncationAndEveryExtension) {
  const std::string bytes = BytesOf(PushFrame());
  for (size_t size = 0; size < bytes.size(); ++size) {
    const Frame frame(bytes.substr(0, size));
    FrameReader reader(frame);
    EXPECT_EQ(ReadHeader(reader, FrameKind::kPush, false).status().code(),
              absl::StatusCode::kInvalidArgument)
        << size;
  }
  const Frame longer(bytes + "x");
  FrameReader reader(longer);
  EXPECT_FALSE(ReadHeader(reader, FrameKind::kPush, false).ok());
}

TEST(ReadHeader, RefusesAWrongKindMagicOrStatus) {
  const std::string bytes = BytesOf(PushFrame());
  const auto refused = [](const std::string& with) {
    const Frame frame(with);
    FrameReader reader(frame);
    return !ReadHeader(reader, FrameKind::kPush, false).ok();
  };
  EXPECT_FALSE(refused(bytes));
  for (size_t at : {0, 1, 2, 3, 4, 5, 6, 7, 64, 65, 66, 67, 68, 69, 70, 71}) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = bytes;
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << bit));
      EXPECT_TRUE(refused(flipped)) << "byte " << at << " bit " << bit;
    }
  }
  const Frame frame = PushFrame();
  FrameReader reader(frame);
  EXPECT_FALSE(ReadHeader(reader, FrameKind::kPull, false).ok());
}

// For any bytes, the reader neither crashes nor reads past the end, and every accepted frame has
// exactly the body size that its counts require.
TEST(ReadHeader, SurvivesRandomHeaders) {
  std::mt19937_64 random(20240229);
  const std::string bytes = BytesOf(PushFrame());
  int accepted = 0;
  for (int round = 0; round < 200'000; ++round) {
    std::string mutated = bytes.substr(0, random() % (bytes.size() + 1));
    for (uint64_t flips = 1 + random() % 4; flips > 0 && !mutated.empty(); --flips) {
      mutated[random() % std::min<size_t>(mutated.size(), 96)] = static_cast<char>(random());
    }
    const Frame frame = InPieces(mutated, 1 + random() % 64);
    FrameReader reader(frame);
    const bool reply = random() % 2 == 0;
    const auto kind = static_cast<FrameKind>(1 + random() % 5);
    if (ReadHeader(reader, kind, reply).ok()) ++accepted;
    EXPECT_LE(reader.left(), mutated.size());
  }
  EXPECT_LT(accepted, 200'000);
}

TEST(ReadHeader, BoundsTheSizeOfTheReply) {
  FrameHeader header;
  header.kind = static_cast<uint16_t>(FrameKind::kPullDense);
  header.count = 0xFFFFFFFF;
  header.stride = kMaxStride;
  const Frame frame = StartFrame(header);
  FrameReader reader(frame);
  const absl::Status status = ReadHeader(reader, FrameKind::kPullDense, false).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("send fewer"), absl::string_view::npos) << status;
}

TEST(ReadHeader, KnowsTheBodySizeOfEveryKind) {
  struct Case {
    FrameKind kind;
    bool reply;
    size_t body;
  };
  // count 3, stride 2
  const std::vector<Case> cases = {
      {FrameKind::kPull, false, 24},      {FrameKind::kPull, true, 27},
      {FrameKind::kPush, false, 51},      {FrameKind::kPush, true, 0},
      {FrameKind::kPullDense, false, 0},  {FrameKind::kPullDense, true, 24},
      {FrameKind::kPushDense, false, 24}, {FrameKind::kPushDense, true, 0},
      {FrameKind::kScan, false, 0},       {FrameKind::kScan, true, 51}};
  for (const Case& c : cases) {
    for (size_t body : {size_t{0}, size_t{24}, size_t{27}, size_t{51}}) {
      FrameHeader header = PushHeader();
      header.kind = static_cast<uint16_t>(c.kind);
      Frame frame = StartFrame(header);
      if (body > 0) std::memset(frame.AppendBuffer(body), 0, body);
      FrameReader reader(frame);
      EXPECT_EQ(ReadHeader(reader, c.kind, c.reply).ok(), body == c.body)
          << FrameKindName(c.kind) << (c.reply ? " reply " : " request ") << body;
    }
  }
}

TEST(ErrorFrame, ReadsBackAsTheError) {
  const absl::Status error = absl::FailedPreconditionError("epoch 3 is stale");
  const Frame frame = ErrorFrame(PushHeader(), error);
  FrameReader reader(frame);
  EXPECT_EQ(ReadHeader(reader, FrameKind::kPush, true).status(), error);
}

TEST(ErrorFrame, WithAnUnknownCodeIsMalformed) {
  std::string bytes = BytesOf(ErrorFrame(PushHeader(), absl::InternalError("x")));
  bytes[6] = 17;
  const Frame frame(bytes);
  FrameReader reader(frame);
  EXPECT_EQ(ReadHeader(reader, FrameKind::kPush, true).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(BodyHash, OfAReplyIsCheckedIfSet) {
  FrameHeader header;
  header.kind = static_cast<uint16_t>(FrameKind::kPullDense);
  Frame plain = StartFrame(header);
  plain.AppendBytes("four", 4);
  EXPECT_EQ(CheckReplyHash(header, plain), absl::OkStatus());  // 0: from an embedded server

  const Frame hashed = WithBodyHash(plain);
  ASSERT_EQ(hashed.size(), plain.size());
  FrameReader reader(hashed);
  char body[4];
  ASSERT_TRUE(reader.Read(&header, sizeof(header)) && reader.Read(body, sizeof(body)));
  EXPECT_EQ(std::string(body, 4), "four");
  EXPECT_EQ(CheckReplyHash(header, hashed), absl::OkStatus());

  Frame changed = StartFrame(header);
  changed.AppendBytes("fouR", 4);
  EXPECT_EQ(CheckReplyHash(header, changed).code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace cistern
