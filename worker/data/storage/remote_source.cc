#include "worker/data/storage/remote_source.h"

#include <arrow/buffer.h>
#include <arrow/util/future.h>

#include <algorithm>
#include <cstring>

#include "absl/time/clock.h"
#include "worker/data/storage/remote_file.h"

namespace cistern::data {
namespace {

constexpr int64_t kFirstPiece = int64_t{256} << 10, kPiece = int64_t{4} << 20;
// Of which piece the next one is read while these bytes are used: not for a header alone.
constexpr int64_t kReadAheadAfter = int64_t{64} << 10;
constexpr int kReadAttempts = 3;

class RemoteSource : public ByteSource {
 public:
  RemoteSource(std::string path, std::shared_ptr<arrow::io::RandomAccessFile> file, int64_t bytes)
      : path_(std::move(path)), file_(std::move(file)), bytes_(bytes) {}
  ~RemoteSource() override {
    if (next_.is_valid()) next_.Wait();  // it reads into memory of file_
  }

  absl::StatusOr<size_t> Read(char* out, size_t size) override {
    if (piece_ == nullptr || taken_ == piece_->size()) CISTERN_RETURN_IF_ERROR(NextPiece());
    const int64_t count = std::min(static_cast<int64_t>(size), piece_->size() - taken_);
    std::memcpy(out, piece_->data() + taken_, static_cast<size_t>(count));
    taken_ += count;
    read_ += static_cast<uint64_t>(count);
    if (taken_ >= std::min(kReadAheadAfter, piece_->size())) ReadAhead();
    return static_cast<size_t>(count);
  }

  absl::StatusOr<bool> Seek(uint64_t offset) override {
    if (next_.is_valid()) next_.Wait();
    next_ = {};
    piece_.reset();
    begin_ = std::min(static_cast<int64_t>(offset), bytes_);
    return true;
  }

  uint64_t file_bytes_read() const override { return read_; }
  const std::string& path() const override { return path_; }

 private:
  using Piece = std::shared_ptr<arrow::Buffer>;

  int64_t PieceSize() const {
    return std::min(begin_ == 0 ? kFirstPiece : kPiece, bytes_ - begin_);
  }

  // Starts to read the piece at begin_.
  void ReadAhead() {
    if (next_.is_valid() || begin_ == bytes_) return;
    next_ = file_->ReadAsync(arrow::io::default_io_context(), begin_, PieceSize());
  }

  // Takes the piece at begin_.
  absl::Status NextPiece() {
    const int64_t wanted = PieceSize();
    arrow::Result<Piece> got = next_.is_valid() ? next_.result() : file_->ReadAt(begin_, wanted);
    next_ = {};
    for (int attempt = 1; !IsWhole(got, wanted); ++attempt) {
      const absl::Status error =
          got.ok()
              ? absl::UnavailableError(absl::StrCat(
                    path_, ": the server sent ", (*got)->size(), " of ", wanted, " bytes at byte ",
                    begin_, ": the connection was cut, or the file changed"))
              : RemoteError(path_, got.status());
      if (attempt == kReadAttempts || !absl::IsUnavailable(error)) return error;
      absl::SleepFor(absl::Milliseconds(200) * (1 << attempt));
      got = file_->ReadAt(begin_, wanted);
    }
    piece_ = *std::move(got);
    taken_ = 0;
    begin_ += wanted;
    return absl::OkStatus();
  }

  static bool IsWhole(const arrow::Result<Piece>& piece, int64_t wanted) {
    return piece.ok() && (*piece)->size() == wanted;
  }

  const std::string path_;
  const std::shared_ptr<arrow::io::RandomAccessFile> file_;
  const int64_t bytes_;  // of the file
  Piece piece_;          // null: nothing was read
  int64_t taken_ = 0;    // bytes of piece_
  int64_t begin_ = 0;    // of the piece after it
  arrow::Future<Piece> next_;
  uint64_t read_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ByteSource>> MakeRemoteSource(
    const std::string& path, std::shared_ptr<arrow::io::RandomAccessFile> file) {
  const auto bytes = file->GetSize();
  if (!bytes.ok()) return RemoteError(path, bytes.status());
  return std::make_unique<RemoteSource>(path, std::move(file), *bytes);
}

}  // namespace cistern::data
