#include "worker/data/source/shuffled_reader.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "common/base/check.h"
#include "common/base/permutation.h"

namespace cistern::data {
namespace {

constexpr uint64_t kSeedOfBuffers = 0x62756666657273;  // differs from the seeds of other draws
constexpr size_t kSamplesAtOnce = 1024;

class ShuffledReader : public SampleReader {
 public:
  ShuffledReader(std::unique_ptr<SampleReader> reader, size_t inputs, const ShuffleBuffer& options)
      : reader_(std::move(reader)),
        inputs_(inputs),
        most_(static_cast<size_t>(
            std::min<uint64_t>(options.samples, std::numeric_limits<uint32_t>::max()))),
        seed_(options.seed ^ kSeedOfBuffers),
        stream_(uint64_t{options.epoch} << 32 | options.stream) {
    CISTERN_CHECK(most_ > 0);
    stored_.Reset(inputs_);
  }

  absl::StatusOr<size_t> Read(size_t max_samples, SampleBlock* block) override {
    CISTERN_ASSIGN_OR_RETURN(const uint64_t done, Draw(max_samples, block));
    return static_cast<size_t>(done);
  }

  absl::StatusOr<uint64_t> Skip(uint64_t max_samples, SampleBlock*) override {
    return Draw(max_samples, nullptr);
  }

 private:
  // Appends the next samples to `block`, or drops them if it is null.
  absl::StatusOr<uint64_t> Draw(uint64_t max_samples, SampleBlock* block) {
    uint64_t done = 0;
    for (; done < max_samples; ++done) {
      while (buffer_.size() < most_) {
        CISTERN_ASSIGN_OR_RETURN(const bool found, Refill());
        if (!found) break;
      }
      if (buffer_.empty()) break;
      const uint64_t at = RandomBelow(seed_, drawn_++, stream_, buffer_.size());
      if (block != nullptr) block->Append(stored_, buffer_[at], 1);
      buffer_[at] = buffer_.back();
      buffer_.pop_back();
    }
    return done;
  }

  // Adds the reader's next sample to the buffer; false at its end.
  absl::StatusOr<bool> Refill() {
    if (next_ == stored_.size) {
      if (at_end_) return false;
      if (stored_.size >= 2 * most_ + kSamplesAtOnce) DropDrawn();
      CISTERN_ASSIGN_OR_RETURN(const size_t got, reader_->Read(kSamplesAtOnce, &stored_));
      at_end_ = got == 0;
      if (at_end_) return false;
    }
    buffer_.push_back(static_cast<uint32_t>(next_++));
    return true;
  }

  // Moves the samples of the buffer to a new block.
  void DropDrawn() {
    SampleBlock kept;
    kept.Reset(inputs_);
    for (uint32_t& sample : buffer_) {
      kept.Append(stored_, sample, 1);
      sample = static_cast<uint32_t>(kept.size - 1);
    }
    stored_ = std::move(kept);
    next_ = stored_.size;
  }

  const std::unique_ptr<SampleReader> reader_;
  const size_t inputs_, most_;
  const uint64_t seed_, stream_;
  SampleBlock stored_;            // samples of the buffer, drawn ones, and from next_ on later ones
  size_t next_ = 0;               // the first sample of stored_ that was not in the buffer yet
  std::vector<uint32_t> buffer_;  // indices in stored_
  uint64_t drawn_ = 0;
  bool at_end_ = false;
};

}  // namespace

std::unique_ptr<SampleReader> Shuffled(std::unique_ptr<SampleReader> reader, size_t inputs,
                                       const ShuffleBuffer& options) {
  return std::make_unique<ShuffledReader>(std::move(reader), inputs, options);
}

}  // namespace cistern::data
