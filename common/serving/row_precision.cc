#include "common/serving/row_precision.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "common/base/half.h"

namespace cistern {
namespace {

constexpr size_t kKeyBytes = sizeof(Key);
constexpr float kMaxHalf = 65504.0f;
constexpr int kMaxQ = 255;

float ClampToHalf(float x) {
  return std::clamp(x, -kMaxHalf, kMaxHalf);
}

// Rounds with the scale and offset that a reader will see, so that their own rounding does not add
// to the error.
void EncodeInt8(uint32_t dim, const float* weights, char* out) {
  const auto [least, most] = std::minmax_element(weights, weights + dim);
  const HalfBits head[2] = {FloatToHalf(ClampToHalf((*most - *least) / kMaxQ)),
                            FloatToHalf(ClampToHalf(*least))};
  std::memcpy(out, head, sizeof(head));
  const float scale = HalfToFloat(head[0]), offset = HalfToFloat(head[1]);
  auto* q = reinterpret_cast<uint8_t*>(out + sizeof(head));
  for (uint32_t i = 0; i < dim; ++i) {
    const float steps = scale > 0 ? (weights[i] - offset) / scale : 0;
    q[i] = static_cast<uint8_t>(std::clamp(std::nearbyint(steps), 0.0f, 255.0f));
  }
}

void DecodeInt8(uint32_t dim, const char* row, float* out) {
  HalfBits head[2];
  std::memcpy(head, row, sizeof(head));
  const float scale = HalfToFloat(head[0]), offset = HalfToFloat(head[1]);
  const auto* q = reinterpret_cast<const uint8_t*>(row + sizeof(head));
  for (uint32_t i = 0; i < dim; ++i) out[i] = static_cast<float>(q[i]) * scale + offset;
}

}  // namespace

const char* NameOf(RowPrecision precision) {
  switch (precision) {
    case RowPrecision::kFloat16:
      return "float16";
    case RowPrecision::kBfloat16:
      return "bfloat16";
    case RowPrecision::kInt8:
      return "int8";
    case RowPrecision::kFloat32:
      break;
  }
  return "float32";
}

std::optional<RowPrecision> PrecisionOf(const std::string& name) {
  for (const RowPrecision precision : {RowPrecision::kFloat32, RowPrecision::kFloat16,
                                       RowPrecision::kBfloat16, RowPrecision::kInt8}) {
    if (name == NameOf(precision)) return precision;
  }
  return std::nullopt;
}

size_t WeightBytes(RowPrecision precision, uint32_t dim) {
  switch (precision) {
    case RowPrecision::kFloat16:
    case RowPrecision::kBfloat16:
      return dim * sizeof(HalfBits);
    case RowPrecision::kInt8:
      return 2 * sizeof(HalfBits) + dim;
    case RowPrecision::kFloat32:
      break;
  }
  return dim * sizeof(float);
}

size_t RowBytes(RowPrecision precision, uint32_t dim) {
  return (kKeyBytes + WeightBytes(precision, dim) + 7) / 8 * 8;
}

void EncodeRow(RowPrecision precision, uint32_t dim, Key key, const float* weights, char* row) {
  std::memset(row, 0, RowBytes(precision, dim));
  std::memcpy(row, &key, kKeyBytes);
  char* const out = row + kKeyBytes;
  if (precision == RowPrecision::kInt8) return EncodeInt8(dim, weights, out);
  if (precision == RowPrecision::kFloat32) {
    std::memcpy(out, weights, dim * sizeof(float));
    return;
  }
  auto* halves = reinterpret_cast<HalfBits*>(out);
  for (uint32_t i = 0; i < dim; ++i) {
    halves[i] = precision == RowPrecision::kFloat16 ? FloatToHalf(ClampToHalf(weights[i]))
                                                    : FloatToBfloat16(weights[i]);
  }
}

void DecodeWeights(RowPrecision precision, uint32_t dim, const char* weights, float* out) {
  const auto* halves = reinterpret_cast<const HalfBits*>(weights);
  switch (precision) {
    case RowPrecision::kFloat32:
      std::memcpy(out, weights, dim * sizeof(float));
      return;
    case RowPrecision::kFloat16:
      for (uint32_t i = 0; i < dim; ++i) out[i] = HalfToFloat(halves[i]);
      return;
    case RowPrecision::kBfloat16:
      for (uint32_t i = 0; i < dim; ++i) out[i] = Bfloat16ToFloat(halves[i]);
      return;
    case RowPrecision::kInt8:
      DecodeInt8(dim, weights, out);
  }
}

}  // namespace cistern
