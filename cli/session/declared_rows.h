// How many rows a model file says its tables may have: HugeCTR needs to know, Cistern does not.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "worker/model/config/model_config.h"

namespace cistern {

struct DeclaredRows {
  uint64_t rows = 0;
  std::string source;  // the key that says so; empty: none does
};

// By embedding: slot_size_array of the embedding or, for its input's slots, of the Data layer; else
// max_vocabulary_size_per_gpu times the GPUs of solver.gpu.
std::vector<DeclaredRows> DeclaredRowsOf(const ModelConfig& config);

}  // namespace cistern
