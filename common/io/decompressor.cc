#include "common/io/decompressor.h"

#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <vector>

#include "absl/strings/match.h"
#include "common/base/check.h"
#include "common/io/gzip.h"

namespace cistern {
namespace {

constexpr size_t kMagicBytes = 4;
constexpr size_t kInputBytes = size_t{256} << 10;
constexpr int kZstdWindowLog = 27;  // 128 MiB, the limit of the zstd program too

// A source whose first bytes have already been read.
class ContinuedSource : public ByteSource {
 public:
  ContinuedSource(std::string begin, std::unique_ptr<ByteSource> rest)
      : begin_(std::move(begin)), rest_(std::move(rest)) {}

  absl::StatusOr<size_t> Read(char* out, size_t size) override {
    if (taken_ == begin_.size()) return rest_->Read(out, size);
    const size_t count = std::min(size, begin_.size() - taken_);
    std::memcpy(out, begin_.data() + taken_, count);
    taken_ += count;
    return count;
  }
  absl::StatusOr<bool> Seek(uint64_t offset) override {
    CISTERN_ASSIGN_OR_RETURN(const bool found, rest_->Seek(offset));
    if (found) taken_ = begin_.size();
    return found;
  }
  uint64_t file_bytes_read() const override {
    return rest_->file_bytes_read() - (begin_.size() - taken_);
  }
  const std::string& path() const override { return rest_->path(); }

 private:
  const std::string begin_;
  size_t taken_ = 0;
  const std::unique_ptr<ByteSource> rest_;
};

// The part that gzip and zstd share: feeds compressed bytes to Step until it yields output.
class UnpackedSource : public ByteSource {
 public:
  UnpackedSource(const char* format, std::unique_ptr<ByteSource> packed)
      : format_(format), packed_(std::move(packed)), input_(kInputBytes) {}

  absl::StatusOr<size_t> Read(char* out, size_t size) override {
    while (true) {
      if (begin_ == end_ && !output_waits_) {
        CISTERN_ASSIGN_OR_RETURN(end_, packed_->Read(input_.data(), input_.size()));
        begin_ = 0;
        if (end_ == 0) {
          if (!in_stream_) return size_t{0};
          return WithKind(
              absl::DataLossError(absl::StrCat(path(), " is cut short: it ends inside a ", format_,
                                               " stream, at byte ", packed_->file_bytes_read(),
                                               " of the file (", unpacked_, " bytes unpacked)")),
              ErrorKind::kCutShort);
        }
      }
      CISTERN_ASSIGN_OR_RETURN(const size_t made, Step(out, size));
      unpacked_ += made;
      if (made > 0) return made;
    }
  }
  uint64_t file_bytes_read() const override { return packed_->file_bytes_read(); }
  const std::string& path() const override { return packed_->path(); }

 protected:
  // Unpacks input_[begin_, end_) to `out` as far as both reach, advances begin_, and returns the
  // number of bytes made. Sets in_stream_ and output_waits_.
  virtual absl::StatusOr<size_t> Step(char* out, size_t size) = 0;

  absl::Status Corrupt(const char* why) const {
    return absl::DataLossError(
        absl::StrCat(path(), ": its ", format_, " stream is corrupt at byte ",
                     packed_->file_bytes_read() - (end_ - begin_), " of the file (", unpacked_,
                     " bytes unpacked): ", why == nullptr ? "unreadable" : why));
  }

  const char* const format_;
  const std::unique_ptr<ByteSource> packed_;
  std::vector<char> input_;
  size_t begin_ = 0, end_ = 0;
  bool in_stream_ = false;     // a stream has begun and has not ended
  bool output_waits_ = false;  // the decoder may hold more output than `out` had room for
  uint64_t unpacked_ = 0;
};

class GzipSource : public UnpackedSource {
 public:
  explicit GzipSource(std::unique_ptr<ByteSource> packed)
      : UnpackedSource("gzip", std::move(packed)) {
    const int made = inflateInit2(&stream_, kGzipWindow);
    if (made == Z_MEM_ERROR) throw std::bad_alloc();  // as any other failed allocation
    CISTERN_CHECK(made == Z_OK);
  }
  ~GzipSource() override { inflateEnd(&stream_); }

 protected:
  absl::StatusOr<size_t> Step(char* out, size_t size) override {
    // Zeros after a stream fill up a block of a tape or of an archive, as for gzip.
    while (ended_ && !in_stream_ && begin_ < end_ && input_[begin_] == 0) ++begin_;
    if (begin_ == end_ && !in_stream_) return size_t{0};
    const uInt room = static_cast<uInt>(std::min<size_t>(size, size_t{1} << 30));
    stream_.next_in = reinterpret_cast<Bytef*>(input_.data() + begin_);
    stream_.avail_in = static_cast<uInt>(end_ - begin_);
    stream_.next_out = reinterpret_cast<Bytef*>(out);
    stream_.avail_out = room;
    if (begin_ < end_) in_stream_ = true;
    const int result = inflate(&stream_, Z_NO_FLUSH);
    begin_ = end_ - stream_.avail_in;
    output_waits_ = stream_.avail_out == 0;
    if (result == Z_STREAM_END) {
      in_stream_ = output_waits_ = false;
      ended_ = true;
      CISTERN_CHECK(inflateReset(&stream_) == Z_OK);
    } else if (result == Z_MEM_ERROR) {
      return absl::ResourceExhaustedError("out of memory in zlib");
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
      const absl::string_view why = stream_.msg == nullptr ? "" : stream_.msg;
      if (why == "unknown compression method" || why == "unknown header flags set") {
        return absl::UnimplementedError(
            absl::StrCat(path(), ": its gzip stream has an ", why,
                         ": compress the file again with gzip or zstd"));
      }
      return Corrupt(stream_.msg);
    }
    return size_t{room - stream_.avail_out};
  }

 private:
  z_stream stream_ = {};
  bool ended_ = false;  // some stream ended
};

class ZstdSource : public UnpackedSource {
 public:
  explicit ZstdSource(std::unique_ptr<ByteSource> packed)
      : UnpackedSource("zstd", std::move(packed)), stream_(ZSTD_createDStream()) {
    if (stream_ == nullptr) throw std::bad_alloc();
    CISTERN_CHECK(
        !ZSTD_isError(ZSTD_DCtx_setParameter(stream_, ZSTD_d_windowLogMax, kZstdWindowLog)));
  }
  ~ZstdSource() override { ZSTD_freeDStream(stream_); }

 protected:
  absl::StatusOr<size_t> Step(char* out, size_t size) override {
    ZSTD_inBuffer in = {input_.data(), end_, begin_};
    ZSTD_outBuffer made = {out, size, 0};
    const size_t result = ZSTD_decompressStream(stream_, &made, &in);
    begin_ = in.pos;
    if (ZSTD_isError(result)) return Corrupt(ZSTD_getErrorName(result));
    in_stream_ = result != 0;  // 0: a frame ended, and all of its output was made
    output_waits_ = in_stream_ && made.pos == made.size;
    return made.pos;
  }

 private:
  ZSTD_DStream* const stream_;
};

}  // namespace

const char* CompressionOf(absl::string_view begin) {
  if (absl::StartsWith(begin, "\x1f\x8b")) return "gzip";
  if (absl::StartsWith(begin, "\x28\xb5\x2f\xfd")) return "zstd";
  // Parallel compressors write a skippable frame first.
  const bool skippable = begin.size() >= kMagicBytes && (begin[0] & 0xf0) == 0x50 &&
                         begin.substr(1, 3) == "\x2a\x4d\x18";
  return skippable ? "zstd" : "";
}

absl::StatusOr<std::unique_ptr<ByteSource>> Decompressed(std::unique_ptr<ByteSource> source) {
  std::string begin(kMagicBytes, '\0');
  size_t size = 0;
  while (size < kMagicBytes) {
    CISTERN_ASSIGN_OR_RETURN(const size_t got,
                             source->Read(begin.data() + size, kMagicBytes - size));
    if (got == 0) break;
    size += got;
  }
  begin.resize(size);
  const absl::string_view format = CompressionOf(begin);
  auto whole = std::make_unique<ContinuedSource>(std::move(begin), std::move(source));
  if (format == "gzip") return std::make_unique<GzipSource>(std::move(whole));
  if (format == "zstd") return std::make_unique<ZstdSource>(std::move(whole));
  return whole;
}

}  // namespace cistern
