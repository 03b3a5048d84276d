// A tensor in Paddle's file format, which its load operators and Paddle Serving read.
//
//   u32 0 (version)  u64 0 (levels of detail)  u32 0 (version of the tensor)
//   i32 bytes, TensorDesc (proto/paddle_tensor.proto)  float32[product of dims], row-major
//
// Numbers are little-endian.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"

namespace cistern {

// The whole file. values: [product of dims].
std::string PaddleTensor(absl::Span<const int64_t> dims, absl::Span<const float> values);

}  // namespace cistern
