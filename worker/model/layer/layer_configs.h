// The keys of the built-in layer types, one struct a type, as the model file has them. A layer, its
// export and its tests find them by LayerConfig::own; defaults and bounds are in the layer's file.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "worker/model/config/model_config.h"

namespace cistern::model {

struct BatchNormConfig {
  float factor = 0, eps = 0;
  InitKind gamma_init = InitKind::kDefault, beta_init = InitKind::kDefault;
};

struct ConcatConfig {
  uint32_t axis = 0;
};

struct DiceConfig {
  float alpha = 0, factor = 0, eps = 0;
};

struct DropoutConfig {
  float rate = 0;
};

struct EluConfig {
  float alpha = 0;
};

struct FmOrder2Config {
  uint32_t out_dim = 0;
};

// InnerProduct and FusedInnerProduct.
struct FullyConnectedConfig {
  uint32_t num_output = 0;
  InitKind weight_init = InitKind::kDefault, bias_init = InitKind::kDefault;
  std::optional<double> bias_value;  // all initial biases, instead of bias_init
  bool use_bias = true;
};

struct GatherConfig {
  std::vector<uint32_t> indices;
};

struct GruConfig {
  uint32_t num_output = 0;
  uint32_t steps = 0, vector_size = 0;  // 0: those of the bottom
  InitKind weight_init = InitKind::kDefault, bias_init = InitKind::kDefault;
};

struct HstuConfig {
  uint32_t heads = 0;
  bool causal = true;
  float eps = 0;
};

struct LayerNormConfig {
  float eps = 0;
  InitKind gamma_init = InitKind::kDefault, beta_init = InitKind::kDefault;
};

struct MultiCrossConfig {
  uint32_t num_layers = 0;
  uint32_t projection_dim = 0;  // 0: version 1
  InitKind weight_init = InitKind::kDefault, bias_init = InitKind::kDefault;
};

struct MultiHeadAttentionConfig {
  uint32_t heads = 0;
};

struct MultiplyConfig {
  std::vector<uint32_t> weight_dims;
  InitKind weight_init = InitKind::kDefault;
};

struct PreluConfig {
  float slope = 0;
};

// ReduceSum and ReduceMean.
struct ReduceConfig {
  uint32_t axis = 0;
};

struct ReshapeConfig {
  uint32_t leading_dim = 0;        // 0: elements / dim 0
  uint32_t time_step = 0;          // to three dimensions; 0: to two
  std::vector<uint32_t> selected;  // the other form: slots
};

struct ScaleConfig {
  uint32_t axis = 0, factor = 0;
};

struct SelectConfig {
  uint32_t dim = 0;
  std::vector<uint32_t> index;
};

struct SequenceMaskConfig {
  uint32_t queries = 0, keys = 0;  // the longest sequences
};

struct SliceConfig {
  std::vector<std::pair<uint32_t, uint32_t>> ranges;  // [lo, hi)
};

struct SoftmaxConfig {
  float factor = 0;
};

}  // namespace cistern::model
