// What a model file describes, and the weights that a training of it starts from.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>

#include "common/base/status.h"
#include "worker/export/hugectr/hugectr_model.h"
#include "worker/model/config/model_config.h"
#include "worker/model/graph/model_summary.h"

namespace cistern::app {

struct ModelDescription {
  std::string model;  // the path of its file
  std::vector<std::string> notes;
  model::ModelSummary summary;       // layer by layer; the tables; the memory of a step
  model::PrecisionConfig precision;  // of activations
  HugectrStart start;                // the model files that the solver names
};

// Opens and measures the model files that the solver names; reads no data and allocates no memory
// for training. kInvalidArgument, kDataLoss: training would refuse the model or these files.
absl::StatusOr<ModelDescription> DescribeModel(const model::ModelConfig& config);

nlohmann::ordered_json JsonOf(const ModelDescription& described);

// "float32", "float16" or "bfloat16".
std::string ActivationsText(const model::PrecisionConfig& precision);
// "dynamic", or the number.
std::string LossScaleText(const model::PrecisionConfig& precision);

// Server memory of a row with `value_bytes`: key and value, rounded up to 8 bytes
// (server/table/row_map.h), plus about 10 bytes of index (bucket_index.h).
size_t ServerRowBytes(size_t value_bytes);

}  // namespace cistern::app
