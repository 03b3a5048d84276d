#include "worker/data/format/line_reader.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/strip.h"
#include "worker/data/format/file_list.h"

namespace cistern::data {
namespace {

constexpr size_t kKindBytes = 512;  // as of a tar header

// Whether a line that holds zero bytes would be text without them.
bool IsTextButForZeros(absl::string_view line) {
  const auto is_text = [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= ' ' || absl::ascii_isspace(byte);
  };
  const auto zeros = std::count(line.begin(), line.end(), '\0');
  return zeros < std::count_if(line.begin(), line.end(), is_text) &&
         std::all_of(line.begin(), line.end(), [&](char c) { return c == '\0' || is_text(c); });
}

}  // namespace

absl::StatusOr<std::unique_ptr<LineReader>> LineReader::Open(const std::string& path) {
  CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<ByteStream> stream, ByteStream::Open(path));
  CISTERN_RETURN_IF_ERROR(stream->Fill(kKindBytes));
  const std::string kind = BinaryHint({stream->data(), std::min(kKindBytes, stream->available())});
  if (!kind.empty()) {
    return WithKind(absl::DataLossError(absl::StrCat(path, " is not a text file", kind)),
                    ErrorKind::kNotText);
  }
  return std::unique_ptr<LineReader>(new LineReader(std::move(stream)));
}

absl::StatusOr<bool> LineReader::Next(absl::string_view* line) {
  stream_->Consume(taken_);
  taken_ = 0;
  CISTERN_ASSIGN_OR_RETURN(const bool found, TakeLine());
  first_line_ = last_line_;
  if (found && std::memchr(stream_->data(), '\0', taken_) != nullptr) {
    return WithKind(DataLoss(IsTextButForZeros({stream_->data(), taken_})
                                 ? "holds a zero byte: this is not a text file; tr -d '\\000' "
                                   "removes such bytes"
                                 : "holds a zero byte: this is not a text file"),
                    ErrorKind::kNotText);
  }
  *line = found ? Current() : absl::string_view();
  return found;
}

absl::StatusOr<bool> LineReader::Extend(absl::string_view* line) {
  CISTERN_ASSIGN_OR_RETURN(const bool found, TakeLine());
  if (found) *line = Current();
  return found;
}

absl::StatusOr<bool> LineReader::TakeLine() {
  size_t scanned = taken_, end = 0;
  while (true) {
    const char* const data = stream_->data();
    const size_t available = stream_->available();
    const void* feed =
        scanned == available ? nullptr : std::memchr(data + scanned, '\n', available - scanned);
    if (feed != nullptr) {
      end = static_cast<size_t>(static_cast<const char*>(feed) - data) + 1;
    } else if (stream_->at_end()) {
      if (available == taken_) return false;
      end = available;
    }
    if ((end > 0 ? end : available) > kMaxLineBytes) {
      first_line_ = taken_ > 0 ? first_line_ : last_line_ + 1;
      return DataLoss("is longer than 16 MiB: check the file and its quotes");
    }
    if (end > 0) break;
    scanned = available;
    // Doubling keeps the cost of a long line linear.
    CISTERN_RETURN_IF_ERROR(
        stream_->Fill(available < ByteStream::kBufferBytes ? available + 1 : 2 * available));
  }
  taken_ = end;
  ++last_line_;
  return true;
}

absl::string_view LineReader::Current() const {
  absl::string_view line(stream_->data(), taken_);
  if (absl::ConsumeSuffix(&line, "\n")) absl::ConsumeSuffix(&line, "\r");
  if (first_line_ == 1) absl::ConsumePrefix(&line, "\xEF\xBB\xBF");
  return line;
}

absl::Status LineReader::WithPlace(const absl::Status& status) const {
  return AddContext(status, absl::StrCat(path(), ": line ", first_line_));
}

absl::Status LineReader::DataLoss(absl::string_view what) const {
  return absl::DataLossError(absl::StrCat(path(), ": line ", first_line_, ": ", what));
}

}  // namespace cistern::data
