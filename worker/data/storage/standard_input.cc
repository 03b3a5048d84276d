#include "worker/data/storage/standard_input.h"

#include <algorithm>
#include <utility>

#include "common/io/decompressor.h"

namespace cistern::data {
namespace {

// Bytes that were read already, and then what follows them.
class SeenSource : public ByteSource {
 public:
  SeenSource(std::string seen, std::unique_ptr<ByteSource> rest)
      : seen_(std::move(seen)), rest_(std::move(rest)) {}
  absl::StatusOr<size_t> Read(char* out, size_t size) override {
    if (at_ == seen_.size()) return rest_->Read(out, size);
    const size_t got = seen_.copy(out, size, at_);
    at_ += got;
    return got;
  }
  uint64_t file_bytes_read() const override { return rest_->file_bytes_read(); }
  const std::string& path() const override { return rest_->path(); }

 private:
  const std::string seen_;
  size_t at_ = 0;
  const std::unique_ptr<ByteSource> rest_;
};

// A process has one standard input.
std::unique_ptr<ByteSource>& Seen() {
  static std::unique_ptr<ByteSource> seen;
  return seen;
}

}  // namespace

absl::StatusOr<std::string> FirstLineOfStandardInput(size_t most) {
  CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<ByteSource> source, OpenStandardInput());
  constexpr size_t kStep = 4096;
  std::string seen;
  size_t end = std::string::npos;
  while (end == std::string::npos && seen.size() < most) {
    const size_t before = seen.size();
    seen.resize(before + std::min(kStep, most - before));
    CISTERN_ASSIGN_OR_RETURN(const size_t got,
                             source->Read(seen.data() + before, seen.size() - before));
    seen.resize(before + got);
    if (got == 0) break;
    end = seen.find('\n', before);
  }
  std::string line = seen.substr(0, end);
  Seen() = std::make_unique<SeenSource>(std::move(seen), std::move(source));
  return line;
}

absl::StatusOr<std::unique_ptr<ByteSource>> OpenStandardInput() {
  if (Seen() != nullptr) return std::move(Seen());
  CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<ByteSource> source, OpenFileSource("-"));
  return Decompressed(std::move(source));
}

}  // namespace cistern::data
