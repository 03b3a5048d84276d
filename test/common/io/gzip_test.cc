#include "common/io/gzip.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace cistern {
namespace {

using ::testing::HasSubstr;

std::string Compress(const std::string& bytes, size_t piece = 1 << 16) {
  std::string out;
  GzipWriter writer;
  for (size_t at = 0; at < bytes.size(); at += piece) {
    writer.Append(absl::string_view(bytes).substr(at, piece), &out);
  }
  writer.Finish(&out);
  return out;
}

absl::Status Inflate(const std::string& stream, std::string* out, size_t piece = 1 << 16) {
  GzipReader reader([out](absl::string_view block) {
    out->append(block.data(), block.size());
    return absl::OkStatus();
  });
  for (size_t at = 0; at < stream.size(); at += piece) {
    CISTERN_RETURN_IF_ERROR(reader.Append(absl::string_view(stream).substr(at, piece)));
  }
  return reader.Finish();
}

std::string NumberedLines(size_t n) {
  std::mt19937_64 random(5);
  std::string text;
  for (size_t i = 0; i < n; ++i) absl::StrAppend(&text, i, " ", random(), "\n");
  return text;
}

TEST(Gzip, ReadsBackItsOutputInPiecesOfAnySize) {
  for (const std::string& text : {std::string(), std::string("a"), NumberedLines(100000)}) {
    for (const size_t piece : {size_t{1} << 20, size_t{4097}}) {
      const std::string stream = Compress(text, piece);
      std::string back;
      ASSERT_TRUE(Inflate(stream, &back, piece).ok());
      EXPECT_EQ(back, text);
    }
  }
  std::string back;
  ASSERT_TRUE(Inflate(Compress("abcdef"), &back, 1).ok());
  EXPECT_EQ(back, "abcdef");
}

// echo -n hello | gzip -n | xxd: the output of another program, with its stored CRC.
TEST(Gzip, ReadsTheStreamOfAnotherProgram) {
  const unsigned char stream[] = {0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
                                  0x03, 0xcb, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00, 0x86,
                                  0xa6, 0x10, 0x36, 0x05, 0x00, 0x00, 0x00};
  const std::string bytes(reinterpret_cast<const char*>(stream), sizeof(stream));
  std::string back;
  ASSERT_TRUE(Inflate(bytes, &back).ok());
  EXPECT_EQ(back, "hello");
  back.clear();
  ASSERT_TRUE(Inflate(bytes + bytes, &back, 3).ok());  // streams may be concatenated, as by cat
  EXPECT_EQ(back, "hellohello");
}

TEST(Gzip, EqualBytesGiveEqualStreams) {
  EXPECT_EQ(Compress(NumberedLines(1000)), Compress(NumberedLines(1000)));
}

TEST(Gzip, DamageIsDetected) {
  const std::string text = NumberedLines(2000), stream = Compress(text);
  std::string back;
  EXPECT_EQ(Inflate("part of a plain text", &back).code(), absl::StatusCode::kDataLoss);
  back.clear();
  const absl::Status cut = Inflate(stream.substr(0, stream.size() - 1), &back);
  EXPECT_EQ(cut.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(cut.message()), HasSubstr("truncated"));
  std::string flipped = stream;
  flipped[flipped.size() / 2] ^= 1;
  back.clear();
  EXPECT_EQ(Inflate(flipped, &back).code(), absl::StatusCode::kDataLoss);
}

// 64 MB of zeros in 64 KB: the output is delivered in blocks, and an error of the caller stops the
// reading.
TEST(Gzip, BombIsDeliveredInBlocksThatTheCallerMayRefuse) {
  const std::string stream = Compress(std::string(64 << 20, '\0'), 1 << 20);
  ASSERT_LT(stream.size(), size_t{1} << 17);
  size_t total = 0, largest = 0;
  GzipReader reader([&](absl::string_view block) -> absl::Status {
    total += block.size();
    largest = std::max(largest, block.size());
    if (total > 1 << 20) return absl::DataLossError("enough");
    return absl::OkStatus();
  });
  EXPECT_EQ(reader.Append(stream).message(), "enough");
  EXPECT_LE(largest, size_t{256} << 10);
  EXPECT_LE(total, size_t{2} << 20);
}

}  // namespace
}  // namespace cistern
