// One pass over a data set, file after file, in order.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "worker/data/format/sample_block.h"

namespace cistern {

// Threads: one at a time.
class SampleReader {
 public:
  virtual ~SampleReader() = default;
  // Appends up to `max_samples` samples to `block` and returns how many; 0 at the end of the data.
  // kDataLoss or kOutOfRange names file, record (from 0), slot and key; nothing of a bad record is
  // appended.
  virtual absl::StatusOr<size_t> Read(size_t max_samples, SampleBlock* block) = 0;
  // Passes over up to `max_samples` samples and returns how many; fewer only at the end of the
  // data. scratch: a block as for Read, whose samples are lost. This one reads them; a reader that
  // knows where samples lie does less, and does not look at all that it passes over.
  virtual absl::StatusOr<uint64_t> Skip(uint64_t max_samples, SampleBlock* scratch);
  // "a.norm: record 3": where the `sample`-th of this reader lies, from 0, for messages.
  virtual std::string PlaceOf(uint64_t sample) const { return absl::StrCat("sample ", sample); }
};

// PlaceOf among files that have a path and a number of samples.
template <typename Files>
std::string PlaceAmong(const Files& files, uint64_t sample) {
  for (const auto& file : files) {
    if (sample < file.samples) return absl::StrCat(file.path, ": record ", sample);
    sample -= file.samples;
  }
  return "behind the last file";
}

enum class NormCheck { kNone, kSum };

struct NormOptions {
  std::string source;  // file list (HugeCTR: line 1 = N, then N paths), or one .norm/.data file
  NormCheck check = NormCheck::kNone;
  bool wide_keys = false;  // I64: 8-byte keys; else 4
  SampleShape shape;
  // By input: the first key of each slot, and the end of the last one's; empty, or too few: a slot
  // takes any key.
  std::vector<std::vector<Key>> slot_starts;
};

// Opens HugeCTR Norm files (reference: section 1.7). The list is read and every header is checked
// now; samples are read by Read, through a bounded buffer.
// kInvalidArgument: a header that does not fit `shape` (both shapes are named); kNotFound: no such
// file; kDataLoss: not a Norm file.
absl::StatusOr<std::unique_ptr<SampleReader>> OpenNorm(const NormOptions& options);

}  // namespace cistern
