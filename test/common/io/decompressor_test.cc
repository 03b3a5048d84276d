// Unpacking while reading. The compressed bytes come from the programs gzip and zstd (golden), and
// large streams from the libraries.
#include "common/io/decompressor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <random>

#include "common/io/gzip.h"

namespace cistern {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Hands out `bytes` in pieces of at most `piece`.
class TextSource : public ByteSource {
 public:
  TextSource(std::string bytes, size_t piece) : bytes_(std::move(bytes)), piece_(piece) {}
  absl::StatusOr<size_t> Read(char* out, size_t size) override {
    const size_t count = std::min({size, piece_, bytes_.size() - at_});
    std::memcpy(out, bytes_.data() + at_, count);
    at_ += count;
    return count;
  }
  uint64_t file_bytes_read() const override { return at_; }
  const std::string& path() const override { return path_; }

 private:
  const std::string bytes_, path_ = "a.file";
  const size_t piece_;
  size_t at_ = 0;
};

absl::StatusOr<std::string> Unpack(const std::string& bytes, size_t piece = 1 << 16,
                                   size_t room = 1000) {
  CISTERN_ASSIGN_OR_RETURN(const auto source,
                           Decompressed(std::make_unique<TextSource>(bytes, piece)));
  std::string all, block(room, '\0');
  while (true) {
    CISTERN_ASSIGN_OR_RETURN(const size_t got, source->Read(block.data(), room));
    if (got == 0) break;
    all.append(block, 0, got);
  }
  EXPECT_EQ(source->file_bytes_read(), bytes.size());
  return all;
}

std::string Gzip(const std::string& text) {
  std::string out;
  GzipWriter writer;
  writer.Append(text, &out);
  writer.Finish(&out);
  return out;
}

std::string Zstd(const std::string& text, int window_log = 0) {
  ZSTD_CCtx* const context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
  if (window_log > 0) {
    ZSTD_CCtx_setParameter(context, ZSTD_c_enableLongDistanceMatching, 1);
    ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, window_log);
    ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, 0);
  }
  std::string out(ZSTD_compressBound(text.size()), '\0');
  ZSTD_outBuffer made = {out.data(), out.size(), 0};
  ZSTD_inBuffer in = {text.data(), text.size(), 0};
  // A first part without its end, so that the frame cannot shrink its window to the content.
  if (window_log > 0) ZSTD_compressStream2(context, &made, &in, ZSTD_e_continue);
  while (ZSTD_compressStream2(context, &made, &in, ZSTD_e_end) > 0) {
  }
  ZSTD_freeCCtx(context);
  out.resize(made.pos);
  return out;
}

std::string Lines(size_t n) {
  std::mt19937_64 random(5);
  std::string text;
  for (size_t i = 0; i < n; ++i) absl::StrAppend(&text, i, " ", random(), "\n");
  return text;
}

// echo -n hello | gzip -n, and | zstd: the output of other programs.
const char kGzipHello[] =
    "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xcb\x48\xcd\xc9\xc9\x07\x00\x86\xa6\x10\x36\x05\x00"
    "\x00\x00";
const char kZstdHello[] = "\x28\xb5\x2f\xfd\x04\x58\x29\x00\x00hello\xa3\x6d\x9f\x88";

TEST(Decompressor, ReadsWhatTheProgramsWrite) {
  EXPECT_EQ(*Unpack({kGzipHello, sizeof(kGzipHello) - 1}), "hello");
  EXPECT_EQ(*Unpack({kZstdHello, sizeof(kZstdHello) - 1}), "hello");
}

TEST(Decompressor, PassesOtherBytesOn) {
  for (const std::string& text :
       {std::string(), std::string("a"), std::string("\x1f"), std::string("PAR1"), Lines(1000)}) {
    for (const size_t piece : {1, 3, 1 << 16}) EXPECT_EQ(*Unpack(text, piece, 7), text);
  }
}

TEST(Decompressor, ReadsStreamsInPiecesOfAnySize) {
  const std::string text = Lines(20000);
  for (const std::string& packed : {Gzip(text), Zstd(text)}) {
    for (const size_t piece : {size_t{1}, size_t{4097}, size_t{1} << 20}) {
      for (const size_t room : {size_t{13}, size_t{1} << 20}) {
        EXPECT_EQ(*Unpack(packed, piece, room), text);
      }
    }
  }
}

TEST(Decompressor, ReadsStreamsBackToBack) {
  EXPECT_EQ(*Unpack(Gzip("a\n") + Gzip("") + Gzip("b\n")), "a\nb\n");
  EXPECT_EQ(*Unpack(Zstd("a\n") + Zstd("") + Zstd("b\n")), "a\nb\n");
  const std::string skippable("\x50\x2a\x4d\x18\x02\x00\x00\x00xx", 10);
  EXPECT_EQ(*Unpack(skippable + Zstd("a\n")), "a\n");
}

TEST(Decompressor, PassesOverZerosAfterAGzipStream) {
  for (const size_t piece : {1, 3, 1 << 16}) {
    EXPECT_EQ(
        *Unpack(Gzip("a\n") + std::string(700, '\0') + Gzip("b\n") + std::string(3, '\0'), piece),
        "a\nb\n");
  }
  EXPECT_EQ(Unpack(Gzip("a\n") + std::string("\0\0x", 3)).status().code(),
            absl::StatusCode::kDataLoss);
}

TEST(Decompressor, SeeksInWhatIsNotCompressed) {
  const std::string folder = testing::TempDir() + "cistern_seek_";
  const auto open = [&](const std::string& name, const std::string& bytes) {
    std::ofstream(folder + name, std::ios::binary) << bytes;
    return *Decompressed(*OpenFileSource(folder + name));
  };
  const auto plain = open("plain", "0123456789"), packed = open("packed", Gzip("0123456789"));
  char out[16];
  for (const uint64_t byte : {7, 1, 9}) {
    EXPECT_TRUE(*plain->Seek(byte));
    ASSERT_EQ(*plain->Read(out, 1), 1u);
    EXPECT_EQ(out[0], '0' + static_cast<char>(byte));
  }
  EXPECT_FALSE(*packed->Seek(7));
  ASSERT_EQ(*packed->Read(out, 1), 1u);
  EXPECT_EQ(out[0], '0');
}

TEST(Decompressor, EveryTruncationIsAnErrorWithFileAndByte) {
  for (const std::string& packed : {Gzip(Lines(50)), Zstd(Lines(50))}) {
    for (size_t size = 4; size < packed.size(); ++size) {
      const auto text = Unpack(packed.substr(0, size), 100);
      ASSERT_EQ(text.status().code(), absl::StatusCode::kDataLoss) << size;
      EXPECT_THAT(std::string(text.status().message()),
                  AllOf(HasSubstr("a.file is cut short"),
                        HasSubstr(absl::StrCat("at byte ", size, " of the file"))));
    }
  }
}

TEST(Decompressor, EveryChangedByteIsAnErrorOrHarmless) {
  const std::string text = Lines(50);
  for (const std::string& packed : {Gzip(text), Zstd(text)}) {
    size_t harmless = 0;
    for (size_t i = 4; i < packed.size(); ++i) {
      std::string changed = packed;
      changed[i] = static_cast<char>(changed[i] ^ 0x10);
      const auto unpacked = Unpack(changed);
      if (unpacked.ok()) {
        EXPECT_EQ(*unpacked, text) << i;
        ++harmless;
        continue;
      }
      ASSERT_EQ(unpacked.status().code(), absl::StatusCode::kDataLoss) << i;
      EXPECT_THAT(std::string(unpacked.status().message()), HasSubstr("a.file"));
    }
    EXPECT_LE(harmless, 10u);  // gzip: the time, system and flags in its header
  }
}

TEST(Decompressor, TextAfterAStreamIsAnError) {
  EXPECT_FALSE(Unpack(Gzip("a") + "tail").ok());
  EXPECT_FALSE(Unpack(Zstd("a") + "tail").ok());
}

TEST(Decompressor, RefusesAWindowThatNeedsMoreThan128MiB) {
  const std::string text = Lines(1000);
  EXPECT_EQ(*Unpack(Zstd(text, 27)), text);
  EXPECT_EQ(Unpack(Zstd(text, 28)).status().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace cistern
