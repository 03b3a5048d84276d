// Rows of a table whose number the model file does not declare.
#pragma once

#include <cstdint>
#include <string>

#include "worker/model/config/model_config.h"

namespace cistern {

struct CountedRows {
  uint64_t rows = 0;
  std::string source;      // where `rows` comes from, in two words
  std::string assumption;  // a sentence
};

inline constexpr uint64_t kSamplesCounted = 2000000;
inline constexpr uint64_t kRowsAssumed = 1000000;

// The distinct keys of the embedding's input in the training data, of which up to kSamplesCounted
// samples are read; kRowsAssumed if it cannot be read.
CountedRows CountRowsOf(const ModelConfig& config, const EmbeddingConfig& embedding);

}  // namespace cistern
