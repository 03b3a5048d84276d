// OpenNorm: the files of a source, one after the other.
#include <algorithm>

#include "common/check.h"
#include "worker/data/file_list.h"
#include "worker/data/norm_file.h"
#include "worker/data/sample_reader.h"

namespace cistern {
namespace {

class NormReader : public SampleReader {
 public:
  NormReader(const NormOptions& options, std::vector<std::string> paths)
      : options_(options), paths_(std::move(paths)) {}

  absl::StatusOr<size_t> Read(size_t max_samples, SampleBlock* block) override {
    CISTERN_CHECK(block->sparse.size() == options_.shape.slot_nums.size());
    size_t done = 0;
    while (done < max_samples && (file_ != nullptr || next_ < paths_.size())) {
      if (file_ == nullptr) {
        CISTERN_ASSIGN_OR_RETURN(file_, NormFile::Open(paths_[next_++], options_));
      }
      CISTERN_ASSIGN_OR_RETURN(const size_t got, file_->Read(max_samples - done, block));
      if (got == 0) file_.reset();
      done += got;
    }
    return done;
  }

 private:
  const NormOptions options_;
  const std::vector<std::string> paths_;
  size_t next_ = 0;  // of paths_
  std::unique_ptr<NormFile> file_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<SampleReader>> OpenNorm(const NormOptions& options) {
  CISTERN_CHECK(options.worker < options.worker_num);
  CISTERN_ASSIGN_OR_RETURN(const std::vector<std::string> all, ReadFileList(options.source));
  std::vector<std::string> mine;
  for (size_t i = options.worker; i < all.size(); i += options.worker_num) {
    CISTERN_RETURN_IF_ERROR(NormFile::Open(all[i], options).status());
    mine.push_back(all[i]);
  }
  return std::make_unique<NormReader>(options, std::move(mine));
}

}  // namespace cistern
