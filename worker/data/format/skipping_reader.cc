#include "worker/data/format/skipping_reader.h"

#include <algorithm>
#include <limits>

namespace cistern::data {
namespace {

constexpr size_t kBlockSamples = 1024;

class SkippingReader : public SampleReader {
 public:
  using Open = std::function<absl::StatusOr<std::unique_ptr<SampleReader>>(const std::string&)>;

  SkippingReader(const std::vector<std::string>& paths, size_t inputs, uint64_t most, Open open,
                 BadData* bad, bool may_be_empty)
      : inputs_(inputs),
        open_(std::move(open)),
        bad_(*bad),
        may_be_empty_(may_be_empty),
        most_(most),
        left_(most == 0 ? std::numeric_limits<uint64_t>::max() : most) {
    for (const std::string& path : paths) files_.push_back({path, 0});
  }

  absl::StatusOr<size_t> Read(size_t max_samples, SampleBlock* block) override {
    CISTERN_ASSIGN_OR_RETURN(const uint64_t done, Take(max_samples, block));
    return static_cast<size_t>(done);
  }

  absl::StatusOr<uint64_t> Skip(uint64_t max_samples, SampleBlock*) override {
    return Take(max_samples, nullptr);
  }

  std::string PlaceOf(uint64_t sample) const override { return PlaceAmong(files_, sample); }

 private:
  struct File {
    std::string path;
    uint64_t samples;  // read so far
  };

  // Moves the next samples to `block`, or drops them if it is null.
  absl::StatusOr<uint64_t> Take(uint64_t max_samples, SampleBlock* block) {
    uint64_t done = 0;
    while (done < max_samples && left_ > 0) {
      if (taken_ == ahead_.size) {
        CISTERN_ASSIGN_OR_RETURN(const bool found, ReadAhead());
        if (!found) break;
      }
      const size_t count = static_cast<size_t>(
          std::min<uint64_t>({max_samples - done, left_, ahead_.size - taken_}));
      if (block != nullptr) block->Append(ahead_, taken_, count);
      taken_ += count;
      done += count;
      left_ -= count;
    }
    return done;
  }

  // Reads the next block; false at the end of the data.
  absl::StatusOr<bool> ReadAhead() {
    ahead_.Reset(inputs_);
    taken_ = 0;
    while (ahead_.size == 0 && at_ < files_.size()) {
      const absl::Status status = ReadFrom(&files_[at_]);
      if (status.ok()) continue;
      if (!IsBadData(status)) return status;
      bad_.Add(files_[at_].path, status);
      if (first_error_.ok()) first_error_ = status;
      EndFile();
    }
    any_ |= ahead_.size > 0;
    if (ahead_.size == 0) CountShortage();
    if (any_ || may_be_empty_ || first_error_.ok()) return ahead_.size > 0;
    return absl::DataLossError(absl::StrCat(
        "no sample is left: all files were left out; the first: ", first_error_.message()));
  }

  // Reads a block of the file into ahead_, which holds the samples before a bad one on error.
  absl::Status ReadFrom(File* file) {
    if (reader_ == nullptr) {
      CISTERN_ASSIGN_OR_RETURN(reader_, open_(file->path));
    }
    const absl::StatusOr<size_t> got = reader_->Read(kBlockSamples, &ahead_);
    file->samples += ahead_.size;
    if (got.ok() && *got == 0) EndFile();
    return got.status();
  }

  // All files were read: fewer samples than declared are missing from one of them, and Raw files do
  // not tell from which.
  void CountShortage() {
    if (most_ == 0 || !first_error_.ok() || files_.empty()) return;
    uint64_t samples = 0;
    for (const File& file : files_) samples += file.samples;
    if (samples >= most_) return;
    bad_.Add(files_.back().path,
             WithKind(absl::DataLossError(absl::StrCat(
                          "num_samples is ", most_, ", but the files hold ", samples,
                          " samples: a file is cut short or missing; copy the data again, or set "
                          "num_samples to ",
                          samples)),
                      ErrorKind::kCutShort));
  }

  void EndFile() {
    reader_.reset();
    ++at_;
  }

  const size_t inputs_;
  const Open open_;
  BadData& bad_;
  const bool may_be_empty_;
  const uint64_t most_;  // samples; 0: all
  uint64_t left_;
  std::vector<File> files_;
  size_t at_ = 0;  // index of the current file
  std::unique_ptr<SampleReader> reader_;
  SampleBlock ahead_;
  size_t taken_ = 0;  // samples of ahead_ that were taken
  bool any_ = false;  // some sample was read
  absl::Status first_error_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<SampleReader>> OpenSkippingBadFiles(
    const std::vector<std::string>& paths, size_t inputs, uint64_t most,
    std::function<absl::StatusOr<std::unique_ptr<SampleReader>>(const std::string&)> open,
    BadData* bad, bool may_be_empty) {
  return std::make_unique<SkippingReader>(paths, inputs, most, std::move(open), bad, may_be_empty);
}

}  // namespace cistern::data
