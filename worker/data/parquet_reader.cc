#include "worker/data/parquet_reader.h"

#include <arrow/util/config.h>

#include "common/check.h"
#include "worker/data/file_list.h"
#include "worker/data/parquet_file.h"

namespace cistern {
namespace {

class ParquetReader : public SampleReader {
 public:
  // A file of the data set, and the samples that its footer promises.
  struct File {
    std::string path;
    uint64_t samples = 0;
  };
  ParquetReader(const SampleShape& shape, const SlotSizes& sizes, std::vector<File> files)
      : shape_(shape), sizes_(sizes), files_(std::move(files)) {}

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
      if (file_ == nullptr && files_[next_].samples <= max_samples - done) {
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

  std::string PlaceOf(uint64_t sample) const override { return PlaceAmong(files_, sample); }

 private:
  absl::Status OpenNext() {
    if (file_ != nullptr) return absl::OkStatus();
    const File& next = files_[next_++];
    CISTERN_ASSIGN_OR_RETURN(file_, ParquetFile::Open(next.path, shape_, sizes_));
    if (file_->rows() == next.samples) return absl::OkStatus();
    return absl::DataLossError(absl::StrCat(next.path, " was replaced while it was being read"));
  }

  const SampleShape shape_;
  const SlotSizes sizes_;
  const std::vector<File> files_;
  size_t next_ = 0;  // of files_
  std::unique_ptr<ParquetFile> file_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<SampleReader>> OpenParquet(const ParquetOptions& options) {
  CISTERN_CHECK(options.worker < options.worker_num);
  CISTERN_ASSIGN_OR_RETURN(const SlotSizes sizes,
                           SlotSizes::Create(options.shape, options.slot_sizes));
  CISTERN_ASSIGN_OR_RETURN(const std::vector<std::string> all, ReadFileList(options.source));
  std::vector<ParquetReader::File> mine;
  for (size_t i = options.worker; i < all.size(); i += options.worker_num) {
    CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<ParquetFile> file,
                             ParquetFile::Open(all[i], options.shape, sizes));
    mine.push_back({all[i], file->rows()});
  }
  return std::make_unique<ParquetReader>(options.shape, sizes, std::move(mine));
}

std::string ParquetLibrary() {
  return "Arrow " ARROW_VERSION_STRING;
}

}  // namespace cistern
