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

// The bytes of a row with its key: a multiple of 8.
//   key u64 | float32, float16, bfloat16: dim weights | int8: scale, offset, dim bytes | zeros
size_t RowBytes(RowPrecision precision, uint32_t dim);

// Writes the row (RowBytes bytes) of `key`. weights: [dim], finite. Weights outside the range of
// float16 become its largest finite value.
void EncodeRow(RowPrecision precision, uint32_t dim, Key key, const float* weights, char* row);

// Reads the weights of a row into out[dim].
void DecodeRow(RowPrecision precision, uint32_t dim, const char* row, float* out);

}  // namespace cistern
