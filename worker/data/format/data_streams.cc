#include "worker/data/format/data_streams.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "worker/data/format/format_list.h"

namespace cistern {
namespace {

// The first samples of another reader.
class LimitedReader : public SampleReader {
 public:
  // begin: the samples that were skipped before; for PlaceOf.
  LimitedReader(std::unique_ptr<SampleReader> reader, uint64_t begin, uint64_t samples)
      : reader_(std::move(reader)), begin_(begin), samples_(samples), left_(samples) {}

  absl::StatusOr<size_t> Read(size_t max_samples, SampleBlock* block) override {
    const auto most = static_cast<size_t>(std::min<uint64_t>(max_samples, left_));
    if (most == 0) return 0;
    CISTERN_ASSIGN_OR_RETURN(const size_t got, reader_->Read(most, block));
    left_ -= got;
    return got;
  }
  absl::StatusOr<uint64_t> Skip(uint64_t max_samples, SampleBlock* scratch) override {
    const uint64_t most = std::min(max_samples, left_);
    if (most == 0) return 0;
    CISTERN_ASSIGN_OR_RETURN(const uint64_t skipped, reader_->Skip(most, scratch));
    left_ -= skipped;
    return skipped;
  }
  std::optional<uint64_t> Samples() const override { return samples_; }
  std::string PlaceOf(uint64_t sample) const override { return reader_->PlaceOf(begin_ + sample); }

 private:
  const std::unique_ptr<SampleReader> reader_;
  const uint64_t begin_, samples_;
  uint64_t left_;
};

// Stream s of S takes what begins in [total s / S, total (s + 1) / S).
uint64_t Begin(uint64_t total, uint64_t stream, uint64_t streams) {
  return static_cast<uint64_t>(static_cast<unsigned __int128>(total) * stream / streams);
}

}  // namespace

absl::StatusOr<DataStreams> DataStreams::Divide(const DataSetOptions& options, uint32_t wanted) {
  DataStreams made(options);
  CISTERN_ASSIGN_OR_RETURN(const std::vector<std::string> paths, FilesOf(options));
  if (!options.shuffle_files) made.paths_ = paths;
  const size_t files = paths.size();
  // With bad files left out, the number of samples before a place is known only when it is reached.
  const bool skips = options.bad_data != nullptr;
  if (wanted <= 1 || files == 0 || (skips && options.num_samples > 0)) return made;
  const bool can_seek = !skips && EntryOf(options).places != nullptr;
  if (can_seek && (files < wanted || options.num_samples > 0)) {
    CISTERN_ASSIGN_OR_RETURN(const SeekPlaces places, EntryOf(options).places(options, paths));
    made.by_files_ = false;
    const uint64_t pieces = places.any_sample ? places.at.back() : places.at.size() - 1;
    made.streams_ = static_cast<uint32_t>(std::clamp<uint64_t>(pieces, 1, wanted));
  } else {
    made.streams_ = static_cast<uint32_t>(std::min<size_t>(files, wanted));
  }
  return made;
}

absl::StatusOr<std::vector<std::string>> DataStreams::Files(uint32_t epoch) const {
  if (!paths_.empty()) return paths_;
  return FilesOf(options_, epoch);
}

absl::StatusOr<std::unique_ptr<SampleReader>> DataStreams::Open(uint32_t epoch,
                                                                uint32_t stream) const {
  CISTERN_ASSIGN_OR_RETURN(const std::vector<std::string> paths, Files(epoch));
  if (streams_ == 1) return OpenFilesOf(options_, paths);
  if (by_files_) {
    const auto at = [&](uint32_t s) {
      return paths.begin() + static_cast<ptrdiff_t>(Begin(paths.size(), s, streams_));
    };
    return OpenFilesOf(options_, {at(stream), at(stream + 1)}, /*may_be_empty=*/true);
  }
  CISTERN_ASSIGN_OR_RETURN(const SeekPlaces places, EntryOf(options_).places(options_, paths));
  const auto cut = [&](uint32_t s) {
    const uint64_t wanted = Begin(places.at.back(), s, streams_);
    if (places.any_sample) return wanted;
    return *std::lower_bound(places.at.begin(), places.at.end(), wanted);
  };
  const uint64_t begin = cut(stream), end = cut(stream + 1);
  CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<SampleReader> reader, OpenFilesOf(options_, paths));
  SampleBlock scratch;
  scratch.Reset(options_.shape.slot_nums.size());
  CISTERN_ASSIGN_OR_RETURN(const uint64_t skipped, reader->Skip(begin, &scratch));
  if (skipped < begin) {
    return absl::DataLossError(
        absl::StrCat(options_.source, " holds fewer samples than when the run began: restore it"));
  }
  return std::make_unique<LimitedReader>(std::move(reader), begin, end - begin);
}

}  // namespace cistern
