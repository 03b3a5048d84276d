#include "worker/export/xbox/sequence_file.h"

#include <zlib.h>

#include <new>

#include "common/base/check.h"

namespace cistern {
namespace {

constexpr char kClass[] = "org.apache.hadoop.io.BytesWritable";
constexpr char kCodec[] = "org.apache.hadoop.io.compress.DefaultCodec";
constexpr char kVersion[] = "SEQ\x06";
constexpr uint32_t kEscape = 0xFFFFFFFF;
constexpr uint64_t kCubeInterval = 2000, kHadoopInterval = 102400;
constexpr size_t kBlockBytes =
    1000000;  // of keys and values: Hadoop's io.seqfile.compress.blocksize
constexpr size_t kMaxBytes = size_t{1} << 30;

void PutU32(uint32_t x, std::string* out) {
  for (int shift = 24; shift >= 0; shift -= 8) out->push_back(static_cast<char>(x >> shift));
}

// A number of at least 0, as Hadoop's WritableUtils.writeVInt: one byte up to 127, else a byte
// -112 - n and n bytes, the highest first.
void PutVint(uint32_t x, std::string* out) {
  if (x <= 127) return out->push_back(static_cast<char>(x));
  int bytes = 1;
  while (bytes < 4 && x >> (8 * bytes) != 0) ++bytes;
  out->push_back(static_cast<char>(-112 - bytes));
  for (int i = bytes - 1; i >= 0; --i) out->push_back(static_cast<char>(x >> (8 * i)));
}

void PutText(absl::string_view text, std::string* out) {
  PutVint(static_cast<uint32_t>(text.size()), out);
  absl::StrAppend(out, text);
}

// A BytesWritable as Hadoop serializes it.
void PutBytes(absl::string_view bytes, std::string* out) {
  PutU32(static_cast<uint32_t>(bytes.size()), out);
  absl::StrAppend(out, bytes);
}

}  // namespace

absl::Status CheckFormat(const SequenceFormat& format) {
  if (format.form == SequenceForm::kHadoop) return absl::OkStatus();
  if (format.compression == SequenceCompression::kNone) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "a SequenceFile for Cube cannot be compressed: cube-builder takes the bytes of a record as "
      "they are");
}

// Compresses one piece of bytes after another, each as a zlib stream (RFC 1950).
class SequenceFileWriter::Zlib {
 public:
  Zlib() {
    const int made = deflateInit(&stream_, Z_DEFAULT_COMPRESSION);
    if (made == Z_MEM_ERROR) throw std::bad_alloc();  // as any other failed allocation
    CISTERN_CHECK(made == Z_OK);
  }
  ~Zlib() { deflateEnd(&stream_); }

  // The result is valid until the next call.
  absl::string_view Compress(absl::string_view bytes) {
    CISTERN_CHECK(deflateReset(&stream_) == Z_OK);
    out_.resize(deflateBound(&stream_, bytes.size()));
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));  // only read
    stream_.avail_in = static_cast<uInt>(bytes.size());
    stream_.next_out = reinterpret_cast<Bytef*>(out_.data());
    stream_.avail_out = static_cast<uInt>(out_.size());
    CISTERN_CHECK(deflate(&stream_, Z_FINISH) == Z_STREAM_END);
    return absl::string_view(out_).substr(0, out_.size() - stream_.avail_out);
  }

 private:
  z_stream stream_ = {};
  std::string out_;
};

SequenceFileWriter::SequenceFileWriter(const SequenceFormat& format, std::string marker,
                                       std::unique_ptr<NewFile> file)
    : format_(format),
      marker_(std::move(marker)),
      file_(std::move(file)),
      zlib_(format.compression == SequenceCompression::kNone ? nullptr : std::make_unique<Zlib>()) {
}

SequenceFileWriter::~SequenceFileWriter() = default;

absl::StatusOr<std::unique_ptr<SequenceFileWriter>> SequenceFileWriter::Create(
    FileSystem& files, const std::string& path, const SequenceFormat& format,
    const std::string& marker) {
  CISTERN_CHECK(marker.size() == kMarkerBytes && CheckFormat(format).ok());
  CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<NewFile> file, NewFile::Create(files, path));
  std::unique_ptr<SequenceFileWriter> writer(
      new SequenceFileWriter(format, marker, std::move(file)));
  CISTERN_RETURN_IF_ERROR(writer->AppendHeader());
  return writer;
}

absl::Status SequenceFileWriter::AppendHeader() {
  std::string header = kVersion;
  PutText(kClass, &header);
  PutText(kClass, &header);
  header.push_back(format_.compression != SequenceCompression::kNone ? 1 : 0);
  header.push_back(format_.compression == SequenceCompression::kBlock ? 1 : 0);
  if (zlib_ != nullptr) PutText(kCodec, &header);
  PutU32(0, &header);  // no metadata
  return file_->Append(header + marker_);
}

absl::Status SequenceFileWriter::AppendMarker() {
  std::string escape;
  PutU32(kEscape, &escape);
  since_marker_ = 0;
  return file_->Append(escape + marker_);
}

absl::Status SequenceFileWriter::Append(absl::string_view key, absl::string_view value) {
  CISTERN_CHECK(key.size() < kMaxBytes && value.size() < kMaxBytes);
  ++rows_;
  if (format_.compression != SequenceCompression::kBlock) return AppendRecord(key, value);
  PutVint(static_cast<uint32_t>(key.size() + sizeof(uint32_t)), &block_.key_lengths);
  PutVint(static_cast<uint32_t>(value.size() + sizeof(uint32_t)), &block_.value_lengths);
  PutBytes(key, &block_.keys);
  PutBytes(value, &block_.values);
  ++block_.rows;
  return block_.keys.size() + block_.values.size() < kBlockBytes ? absl::OkStatus() : AppendBlock();
}

absl::Status SequenceFileWriter::AppendRecord(absl::string_view key, absl::string_view value) {
  const bool cube = format_.form == SequenceForm::kCube;
  if (since_marker_ >= (cube ? kCubeInterval : kHadoopInterval)) {
    CISTERN_RETURN_IF_ERROR(AppendMarker());
  }
  std::string inner;
  if (!cube) PutBytes(value, &inner);
  absl::string_view stored = cube ? value : absl::string_view(inner);
  if (zlib_ != nullptr) stored = zlib_->Compress(stored);
  const auto key_bytes = static_cast<uint32_t>(key.size() + (cube ? 0 : sizeof(uint32_t)));
  record_.clear();
  PutU32(static_cast<uint32_t>(key_bytes + stored.size()), &record_);
  PutU32(key_bytes, &record_);
  if (cube) {
    absl::StrAppend(&record_, key);
  } else {
    PutBytes(key, &record_);
  }
  absl::StrAppend(&record_, stored);
  since_marker_ += cube ? key_bytes + stored.size() : record_.size();
  return file_->Append(record_);
}

absl::Status SequenceFileWriter::AppendBlock() {
  if (block_.rows == 0) return absl::OkStatus();
  CISTERN_RETURN_IF_ERROR(AppendMarker());
  record_.clear();
  PutVint(block_.rows, &record_);
  for (const std::string* part :
       {&block_.key_lengths, &block_.keys, &block_.value_lengths, &block_.values}) {
    PutText(zlib_->Compress(*part), &record_);
  }
  block_ = Block();
  return file_->Append(record_);
}

absl::Status SequenceFileWriter::Close() {
  CISTERN_RETURN_IF_ERROR(AppendBlock());
  return file_->Close();
}

}  // namespace cistern
