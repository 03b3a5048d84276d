// A reader that checks conditions beyond the file format on every sample.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "worker/data/format/sample_reader.h"

namespace cistern::data {

// Passes on another reader's samples. The first sample that FindBad returns is kOutOfRange, with
// its file and record, and no part of it is appended.
//
// Threads: one at a time.
class CheckedReader : public SampleReader {
 public:
  absl::StatusOr<size_t> Read(size_t max_samples, SampleBlock* block) final {
    const size_t before = block->size;
    CISTERN_ASSIGN_OR_RETURN(const size_t got, reader_->Read(max_samples, block));
    if (const std::optional<BadSample> bad = FindBad(*block, before)) {
      const std::string place = reader_->PlaceOf(samples_ + bad->sample - before);
      block->Truncate(bad->sample);
      return absl::OutOfRangeError(absl::StrCat(place, ": ", bad->why));
    }
    samples_ += got;
    return got;
  }

  absl::StatusOr<uint64_t> Skip(uint64_t max_samples, SampleBlock* scratch) final {
    CISTERN_ASSIGN_OR_RETURN(const uint64_t skipped, reader_->Skip(max_samples, scratch));
    samples_ += skipped;
    return skipped;
  }

  std::optional<uint64_t> Samples() const final { return reader_->Samples(); }
  std::string PlaceOf(uint64_t sample) const final { return reader_->PlaceOf(sample); }

 protected:
  struct BadSample {
    size_t sample;    // index in the block
    std::string why;  // the bad value and the fix
  };

  explicit CheckedReader(std::unique_ptr<SampleReader> reader) : reader_(std::move(reader)) {}
  // The first bad sample of the block, starting at `begin`.
  virtual std::optional<BadSample> FindBad(const SampleBlock& block, size_t begin) const = 0;

 private:
  const std::unique_ptr<SampleReader> reader_;
  uint64_t samples_ = 0;  // read or skipped so far
};

}  // namespace cistern::data
