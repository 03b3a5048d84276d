// Requests for FakePredictor's shape, as tensors.
#pragma once

#include <string>
#include <vector>

#include "serve/server/tensor.h"

namespace cistern::serve {

template <class T>
InferTensor TensorFrom(const std::string& name, const std::string& type, std::vector<int64_t> shape,
                       const std::vector<T>& values) {
  return TensorOf(name, type, std::move(shape), absl::Span<const T>(values));
}

// Two samples: dense (0.5, 1) and (2, 3); wide {1}, {2, 3} and {}, {4}; deep {5} and {6, 7}.
// Their predictions are 1 / (1 + 1.5 + 6 + 10) and 1 / (1 + 5 + 4 + 26).
inline std::vector<InferTensor> TwoSamples() {
  return {TensorFrom<float>("dense", "FP32", {2, 2}, {0.5, 1, 2, 3}),
          TensorFrom<int64_t>("wide.keys", "INT64", {4}, {1, 2, 3, 4}),
          TensorFrom<int32_t>("wide.offsets", "INT32", {5}, {0, 1, 3, 3, 4}),
          TensorFrom<int64_t>("deep.keys", "INT64", {3}, {5, 6, 7}),
          TensorFrom<int32_t>("deep.offsets", "INT32", {3}, {0, 1, 3})};
}
inline constexpr float kFirst = 1 / 18.5, kSecond = 1 / 36.0;

// The same in HugeCTR's form.
inline std::vector<InferTensor> TwoHugeCtrSamples() {
  return {TensorFrom<float>("DES", "FP32", {1, 4}, {0.5, 1, 2, 3}),
          TensorFrom<int64_t>("CATCOLUMN", "INT64", {1, 7}, {1, 2, 3, 5, 4, 6, 7}),
          TensorFrom<int32_t>("ROWINDEX", "INT32", {1, 8}, {0, 1, 3, 3, 4, 0, 1, 3})};
}

}  // namespace cistern::serve
