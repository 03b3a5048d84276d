// Initial weights of dense layers (HugeCTR 2.3 src/layer.cpp, include/data_simulator.hpp).
#pragma once

#include <cstddef>
#include <cstdint>

#include "worker/model/config/model_config.h"

namespace cistern::model {

// A distribution of initial weights: a constant, uniform around 0, normal around 0, or a constant
// that the model file names (bias_value).
struct WeightInit {
  enum class Kind { kConstant, kUniform, kNormal, kNamed };
  Kind kind = Kind::kConstant;
  double size = 0;  // the constant, half the width, or the standard deviation
};

// Returns the distribution of `kind` for a weight between `in` and `out` units. For a bias in = 0,
// except for PyTorch's kinds, which depend on `in` alone: Kaiming... (torch.nn.init, for ReLU) and
// TorchLinear (nn.Linear); without it they take `out`.
//
// fallback: the distribution for kDefault.
// exact: XavierNorm without HugeCTR's factor 1 / 0.87962566. That number is the standard deviation
// of a truncated normal; HugeCTR divides by it although it does not truncate.
WeightInit MakeWeightInit(InitKind kind, size_t in, size_t out, const WeightInit& fallback,
                          bool exact);

// Whether the biases of a layer depend on its inputs too.
bool DependsOnInputs(InitKind kind);

// Writes weights first .. first + count of the flat parameters to `out`. Each weight is a pure
// function of (seed, its position).
void FillWeights(const WeightInit& init, uint64_t seed, size_t first, size_t count, float* out);

}  // namespace cistern::model
