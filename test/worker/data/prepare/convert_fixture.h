// A fixture that converts text and reads the result.
#pragma once

#include <gtest/gtest.h>
#include <xxhash.h>

#include <memory>
#include <string>
#include <vector>

#include "test/worker/data/scratch.h"
#include "worker/data/format/key_weights.h"
#include "worker/data/prepare/convert.h"

namespace cistern::data {

// The documented key of "column=text".
inline Key Hash64(const std::string& text) {
  return XXH3_64bits(text.data(), text.size()) & (~0ull >> 1);
}
inline Key Hash32(const std::string& text) {
  const uint64_t hash = XXH3_64bits(text.data(), text.size());
  return (hash ^ hash >> 32) & 0xFFFFFFFF;
}

class ConvertTest : public testing::Test {
 protected:
  // Converts `text` and reads the output into block_.
  absl::Status Run(const std::string& text, ConvertOptions options) {
    options.input = {scratch_.Write("input", text)};
    return Run(options);
  }
  absl::Status Run(ConvertOptions options) {
    if (options.out.empty()) options.out = scratch_.Path("out");
    options.overwrite = true;
    CISTERN_ASSIGN_OR_RETURN(summary_, Convert(options));
    NormOptions norm;
    norm.source = summary_.file_list;
    norm.check = options.check;
    norm.wide_keys = options.key_bits == 64;
    norm.shape = ShapeInFiles(summary_.shape);
    norm.shape.max_keys.assign(norm.shape.slot_nums.size(), summary_.max_keys);
    block_.Reset(1);
    CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<SampleReader> reader, OpenNorm(norm));
    if (HasKeyWeights(summary_.shape)) {
      reader = OpenWithKeyWeights(std::move(reader), summary_.shape);
    }
    return reader->Read(1000000, &block_).status();
  }
  std::string ErrorOf(const std::string& text, const ConvertOptions& options) {
    const absl::Status status = Run(text, options);
    EXPECT_FALSE(std::filesystem::exists(scratch_.Path("out")));
    return status.ok() ? "" : std::string(status.message());
  }
  std::vector<Key> Slot(size_t sample, size_t slot) const {
    const SparseColumn& column = block_.sparse[0];
    const size_t place = sample * summary_.shape.slot_nums[0] + slot;
    return {column.keys.begin() + column.offsets[place],
            column.keys.begin() + column.offsets[place + 1]};
  }

  Scratch scratch_;
  ConvertSummary summary_;
  SampleBlock block_;
};

inline ConvertOptions Raw() {
  ConvertOptions options;
  options.keys = KeyMode::kRaw;
  return options;
}

}  // namespace cistern::data
