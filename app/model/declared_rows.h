// How many rows a model file declares for its tables. HugeCTR needs the numbers; Cistern, whose
// tables grow, uses them only for estimates and exports.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "worker/model/config/model_config.h"

namespace cistern::app {

struct DeclaredRows {
  uint64_t rows = 0;
  std::string source;  // the JSON key that declares it; empty: none does
};

// The declared rows of each embedding, in the order of config.embeddings: the sum of the
// embedding's slot_size_array, or of its input's slots in the Data layer's slot_size_array; else
// max_vocabulary_size_per_gpu times the number of GPUs in solver.gpu.
std::vector<DeclaredRows> DeclaredRowsOf(const model::ModelConfig& config);

}  // namespace cistern::app
