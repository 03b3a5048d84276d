// Files of numbers, one a line, as samples with one key each; "bad" is a line that cannot be read.
#pragma once

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "worker/data/format/sample_reader.h"

namespace cistern::data {

class NumberReader : public SampleReader {
 public:
  explicit NumberReader(const std::string& path) : path_(path), file_(path) {}
  absl::StatusOr<size_t> Read(size_t max_samples, SampleBlock* block) override {
    size_t got = 0;
    std::string line;
    while (got < max_samples && std::getline(file_, line)) {
      uint64_t key = 0;
      if (!absl::SimpleAtoi(line, &key)) return absl::DataLossError(path_ + ": a bad line");
      block->label.push_back(1);
      if (!block->sparse.empty()) {
        block->sparse[0].keys.push_back(key);
        block->sparse[0].offsets.push_back(static_cast<uint32_t>(block->sparse[0].keys.size()));
      }
      ++block->size;
      ++got;
    }
    return got;
  }

 private:
  const std::string path_;
  std::ifstream file_;
};

inline absl::StatusOr<std::unique_ptr<SampleReader>> OpenNumbers(const std::string& path) {
  return std::make_unique<NumberReader>(path);
}

// A block for such samples.
inline SampleBlock NumberBlock() {
  SampleBlock block;
  block.Reset(1);
  return block;
}

}  // namespace cistern::data
