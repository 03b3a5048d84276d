// OpenNorm: reads the files of a source in order.
#include <algorithm>

#include "common/base/check.h"
#include "worker/data/format/file_list.h"
#include "worker/data/format/norm_file.h"
#include "worker/data/format/sample_reader.h"
#include "worker/data/storage/storage.h"

namespace cistern::data {
namespace {

// Number of samples that the default Skip reads at once.
constexpr uint64_t kSkipSamples = 4096;

class NormReader : public SampleReader {
 public:
  // A file of the data set, and the number of samples in its header, once it is known.
  struct File {
    std::string path;
    uint64_t samples = 0;
  };
  NormReader(const NormOptions& options, std::vector<File> files)
      : options_(options), files_(std::move(files)) {}

  absl::StatusOr<size_t> Read(size_t max_samples, SampleBlock* block) override {
    CISTERN_CHECK(block->sparse.size() == options_.shape.slot_nums.size());
    size_t done = 0;
    while (done < max_samples && (file_ != nullptr || next_ < files_.size())) {
      if (file_ == nullptr) {
        CISTERN_RETURN_IF_ERROR(OpenNext());
        ++next_;
      }
      CISTERN_ASSIGN_OR_RETURN(const size_t got, file_->Read(max_samples - done, block));
      if (got == 0) file_.reset();
      done += got;
    }
    return done;
  }

  std::optional<uint64_t> Samples() const override { return SamplesOf(files_); }
  std::string PlaceOf(uint64_t sample) const override { return PlaceAmong(files_, sample); }

  // Skips whole files without reading more than their headers.
  absl::StatusOr<uint64_t> Skip(uint64_t max_samples, SampleBlock* scratch) override {
    uint64_t done = 0;
    while (done < max_samples && (file_ != nullptr || next_ < files_.size())) {
      if (file_ == nullptr) {
        if (files_[next_].samples <=
            max_samples - done) {  // not unknown: that is the largest number
          done += files_[next_++].samples;
          continue;
        }
        CISTERN_RETURN_IF_ERROR(OpenNext());
        if (files_[next_].samples <= max_samples - done) {
          file_.reset();
          continue;
        }
        ++next_;
      }
      CISTERN_ASSIGN_OR_RETURN(const uint64_t got, file_->Skip(max_samples - done, scratch));
      if (got == 0) file_.reset();
      done += got;
    }
    return done;
  }

 private:
  absl::Status OpenNext() {
    CISTERN_ASSIGN_OR_RETURN(file_, NormFile::Open(files_[next_].path, options_));
    files_[next_].samples = static_cast<uint64_t>(file_->header().number_of_records);
    return absl::OkStatus();
  }

  const NormOptions options_;
  std::vector<File> files_;
  size_t next_ = 0;  // index in files_
  std::unique_ptr<NormFile> file_;
};

}  // namespace

absl::StatusOr<uint64_t> SampleReader::Skip(uint64_t max_samples, SampleBlock* scratch) {
  uint64_t done = 0;
  while (done < max_samples) {
    scratch->Reset(scratch->sparse.size());
    CISTERN_ASSIGN_OR_RETURN(
        const size_t got,
        Read(static_cast<size_t>(std::min(max_samples - done, kSkipSamples)), scratch));
    if (got == 0) break;
    done += got;
  }
  return done;
}

absl::StatusOr<std::unique_ptr<SampleReader>> OpenNorm(const NormOptions& options) {
  CISTERN_ASSIGN_OR_RETURN(const std::vector<std::string> paths, ReadFileList(options.source));
  return OpenNorm(options, paths);
}

absl::StatusOr<std::unique_ptr<SampleReader>> OpenNorm(const NormOptions& options,
                                                       const std::vector<std::string>& paths) {
  std::vector<NormReader::File> files;
  for (const std::string& path : paths) {
    if (IsRemote(path)) {
      files.push_back({path, kSamplesUnknown});
      continue;
    }
    CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<NormFile> file, NormFile::Open(path, options));
    files.push_back({path, static_cast<uint64_t>(file->header().number_of_records)});
  }
  return std::make_unique<NormReader>(options, std::move(files));
}

}  // namespace cistern::data
