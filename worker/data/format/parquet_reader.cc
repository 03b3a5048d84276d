#include "worker/data/format/parquet_reader.h"

#include <arrow/util/config.h>

#include "common/base/check.h"
#include "worker/data/format/file_list.h"
#include "worker/data/format/parquet_file.h"
#include "worker/data/storage/storage.h"

namespace cistern::data {
namespace {

class ParquetReader : public SampleReader {
 public:
  // A file of the data set, and the number of samples in its footer, once it is known.
  struct File {
    std::string path;
    uint64_t samples = 0;
  };
  ParquetReader(const SampleShape& shape, const SlotSizes& sizes, ReadCounts* counts)
      : shape_(shape), sizes_(sizes), counts_(counts) {}

  // Reads the footers. Keeps the first file open, so that a data set of one file opens it once.
  absl::Status OpenAll(const std::vector<std::string>& paths) {
    for (const std::string& path : paths) {
      if (IsRemote(path)) {
        files_.push_back({path, kSamplesUnknown});
        continue;
      }
      CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<ParquetFile> file,
                               ParquetFile::Open(path, shape_, sizes_, counts_));
      files_.push_back({path, file->rows()});
      if (files_.size() == 1) first_ = std::move(file);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<size_t> Read(size_t max_samples, SampleBlock* block) override {
    CISTERN_CHECK(block->sparse.size() == shape_.slot_nums.size());
    size_t done = 0;
    while (done < max_samples && (file_ != nullptr || next_ < files_.size())) {
      CISTERN_RETURN_IF_ERROR(OpenNext());
      CISTERN_ASSIGN_OR_RETURN(const size_t got, file_->Read(max_samples - done, block));
      if (got == 0) file_.reset();
      done += got;
    }
    return done;
  }

  absl::StatusOr<uint64_t> Skip(uint64_t max_samples, SampleBlock*) override {
    uint64_t done = 0;
    while (done < max_samples && (file_ != nullptr || next_ < files_.size())) {
      if (file_ == nullptr && files_[next_].samples != kSamplesUnknown &&
          files_[next_].samples <= max_samples - done) {
        done += files_[next_++].samples;
        continue;
      }
      CISTERN_RETURN_IF_ERROR(OpenNext());
      CISTERN_ASSIGN_OR_RETURN(const uint64_t got, file_->Skip(max_samples - done));
      if (got == 0) file_.reset();
      done += got;
    }
    return done;
  }

  std::optional<uint64_t> Samples() const override { return SamplesOf(files_); }
  std::string PlaceOf(uint64_t sample) const override { return PlaceAmong(files_, sample); }

 private:
  absl::Status OpenNext() {
    if (file_ != nullptr) return absl::OkStatus();
    if (next_ == 0) file_ = std::move(first_);
    File& next = files_[next_];
    if (file_ == nullptr) {
      CISTERN_ASSIGN_OR_RETURN(file_, ParquetFile::Open(next.path, shape_, sizes_, counts_));
    }
    ++next_;
    if (next.samples == kSamplesUnknown) next.samples = file_->rows();
    if (file_->rows() == next.samples) return absl::OkStatus();
    return absl::DataLossError(absl::StrCat(next.path, " was replaced while it was being read"));
  }

  const SampleShape shape_;
  const SlotSizes sizes_;
  ReadCounts* const counts_;
  std::vector<File> files_;
  size_t next_ = 0;                            // index in files_
  std::unique_ptr<ParquetFile> file_, first_;  // the current file; files_[0] until it is read
};

}  // namespace

absl::StatusOr<std::unique_ptr<SampleReader>> OpenParquet(const ParquetOptions& options) {
  CISTERN_ASSIGN_OR_RETURN(const std::vector<std::string> paths, ReadFileList(options.source));
  return OpenParquet(options, paths);
}

absl::StatusOr<std::unique_ptr<SampleReader>> OpenParquet(const ParquetOptions& options,
                                                          const std::vector<std::string>& paths) {
  CISTERN_ASSIGN_OR_RETURN(const SlotSizes sizes,
                           SlotSizes::Create(options.shape, options.slot_sizes));
  auto reader = std::make_unique<ParquetReader>(options.shape, sizes, options.counts);
  CISTERN_RETURN_IF_ERROR(reader->OpenAll(paths));
  return reader;
}

std::string ParquetLibrary() {
  return "Arrow " ARROW_VERSION_STRING;
}

}  // namespace cistern::data
