#include "common/io/gzip.h"

#include <zlib.h>

#include <limits>
#include <new>

#include "common/base/check.h"

namespace cistern {
namespace {

constexpr int kMemoryLevel = 8;  // zlib's default
constexpr size_t kBlockBytes = size_t{256} << 10;

// If zlib cannot allocate its tables, throws std::bad_alloc as any other failed allocation does.
void CheckMade(int result) {
  if (result == Z_MEM_ERROR) throw std::bad_alloc();
  CISTERN_CHECK(result == Z_OK);
}

void SetInput(absl::string_view bytes, z_stream* stream) {
  CISTERN_CHECK(bytes.size() <= std::numeric_limits<uInt>::max());
  stream->next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));  // zlib only reads
  stream->avail_in = static_cast<uInt>(bytes.size());
}

}  // namespace

GzipWriter::GzipWriter() : stream_(std::make_unique<z_stream>()) {
  CheckMade(deflateInit2(stream_.get(), Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipWindow,
                         kMemoryLevel, Z_DEFAULT_STRATEGY));
}

GzipWriter::~GzipWriter() {
  deflateEnd(stream_.get());
}

void GzipWriter::Append(absl::string_view bytes, std::string* out) {
  Deflate(bytes, Z_NO_FLUSH, out);
}

void GzipWriter::Finish(std::string* out) {
  Deflate({}, Z_FINISH, out);
}

void GzipWriter::Deflate(absl::string_view bytes, int flush, std::string* out) {
  SetInput(bytes, stream_.get());
  do {
    const size_t begin = out->size();
    out->resize(begin + kBlockBytes);
    stream_->next_out = reinterpret_cast<Bytef*>(out->data() + begin);
    stream_->avail_out = kBlockBytes;
    CISTERN_CHECK(deflate(stream_.get(), flush) != Z_STREAM_ERROR);
    out->resize(out->size() - stream_->avail_out);
  } while (stream_->avail_out == 0);
}

GzipReader::GzipReader(std::function<absl::Status(absl::string_view)> block)
    : block_(std::move(block)), stream_(std::make_unique<z_stream>()), out_(kBlockBytes, '\0') {
  CheckMade(inflateInit2(stream_.get(), kGzipWindow));
}

GzipReader::~GzipReader() {
  inflateEnd(stream_.get());
}

absl::Status GzipReader::Append(absl::string_view bytes) {
  SetInput(bytes, stream_.get());
  do {
    if (!in_stream_ && stream_->avail_in == 0) return absl::OkStatus();
    in_stream_ = true;
    stream_->next_out = reinterpret_cast<Bytef*>(out_.data());
    stream_->avail_out = static_cast<uInt>(out_.size());
    const int result = inflate(stream_.get(), Z_NO_FLUSH);
    if (result == Z_MEM_ERROR) return absl::ResourceExhaustedError("out of memory in zlib");
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR) {
      return absl::DataLossError(
          absl::StrCat("not a gzip stream, or a corrupt one: ",
                       stream_->msg == nullptr ? "unreadable" : stream_->msg));
    }
    const size_t got = out_.size() - stream_->avail_out;
    if (got > 0) CISTERN_RETURN_IF_ERROR(block_(absl::string_view(out_.data(), got)));
    if (result == Z_STREAM_END) {
      in_stream_ = false;
      CISTERN_CHECK(inflateReset(stream_.get()) == Z_OK);
    }
    // If the output block is full, zlib may hold more output even without further input.
  } while (stream_->avail_in > 0 || stream_->avail_out == 0);
  return absl::OkStatus();
}

absl::Status GzipReader::Finish() const {
  if (!in_stream_) return absl::OkStatus();
  return absl::DataLossError("the gzip stream is truncated");
}

}  // namespace cistern
