#include "worker/data/format/data_streams.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace cistern::data {
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

SampleBlock ScratchOf(const DataSetOptions& options) {
  SampleBlock scratch;
  scratch.Reset(options.shape.slot_nums.size());
  return scratch;
}

absl::StatusOr<uint64_t> CountSamples(const DataSetOptions& options,
                                      const std::vector<std::string>& paths) {
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<SampleReader> reader, OpenFilesOf(options, paths));
  if (const std::optional<uint64_t> known = reader->Samples()) return *known;
  SampleBlock scratch = ScratchOf(options);
  return reader->Skip(kSamplesUnknown - 1, &scratch);
}

}  // namespace

absl::StatusOr<DataStreams> DataStreams::Divide(const DataSetOptions& options, uint32_t wanted) {
  DataStreams made(options);
  CISTERN_ASSIGN_OR_RETURN(const std::vector<std::string> paths, FilesOf(options));
  if (!options.shuffle_files) made.paths_ = paths;
  const bool skips = options.bad_data != nullptr;
  if (wanted <= 1 || paths.empty() || (skips && options.num_samples > 0)) return made;
  if (skips || (paths.size() >= wanted && options.num_samples == 0)) {
    made.streams_ = static_cast<uint32_t>(std::min<size_t>(paths.size(), wanted));
    return made;
  }
  CISTERN_ASSIGN_OR_RETURN(made.samples_, CountSamples(options, paths));
  made.streams_ = static_cast<uint32_t>(std::clamp<uint64_t>(made.samples_, 1, wanted));
  made.places_ = std::make_shared<RecordPlaces>();
  made.options_.places = made.places_.get();
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
  if (places_ != nullptr) return OpenRange(paths, stream);
  std::vector<std::string> own;
  for (size_t file = stream; file < paths.size(); file += streams_) own.push_back(paths[file]);
  return OpenFilesOf(options_, own, /*may_be_empty=*/true);
}

absl::StatusOr<std::unique_ptr<SampleReader>> DataStreams::OpenRange(
    const std::vector<std::string>& paths, uint32_t stream) const {
  const auto begin_of = [&](uint64_t s) {
    return static_cast<uint64_t>(static_cast<unsigned __int128>(samples_) * s / streams_);
  };
  const uint64_t begin = begin_of(stream), end = begin_of(uint64_t{stream} + 1);
  CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<SampleReader> reader, OpenFilesOf(options_, paths));
  SampleBlock scratch = ScratchOf(options_);
  CISTERN_ASSIGN_OR_RETURN(const uint64_t skipped, reader->Skip(begin, &scratch));
  if (skipped < begin) {
    return absl::DataLossError(
        absl::StrCat(options_.source, " holds fewer samples than when the run began: restore it"));
  }
  return std::make_unique<LimitedReader>(std::move(reader), begin, end - begin);
}

}  // namespace cistern::data
