// How the weights of a row are stored for serving.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "common/base/types.h"

namespace cistern {

// kInt8: row-wise. w = q * scale + offset with q in 0..255, scale and offset float16.
enum class RowPrecision : uint32_t { kFloat32 = 0, kFloat16 = 1, kBfloat16 = 2, kInt8 = 3 };

// "float32", "float16", "bfloat16", "int8".
const char* NameOf(RowPrecision precision);
std::optional<RowPrecision> PrecisionOf(const std::string& name);

// The bytes of the weights of a row.
//   float32, float16, bfloat16: dim weights | int8: scale, offset, dim bytes
size_t WeightBytes(RowPrecision precision, uint32_t dim);

// The bytes of a row with its key: a multiple of 8.
//   key u64 | weights | zeros
size_t RowBytes(RowPrecision precision, uint32_t dim);

// Writes the row (RowBytes bytes) of `key`. weights: [dim], finite. Weights outside the range of
// float16 become its largest finite value.
void EncodeRow(RowPrecision precision, uint32_t dim, Key key, const float* weights, char* row);

// Reads the weights of a row into out[dim]. weights: WeightBytes bytes, at any address for int8,
// else aligned to 8 bytes.
void DecodeWeights(RowPrecision precision, uint32_t dim, const char* weights, float* out);

}  // namespace cistern
