// An element-wise sweep over a matrix with a dropout draw per element. Internal to x.cu.
//
// One Philox block decides eight neighbouring elements of a row (dropout.h), so a thread computes
// eight, with two quad loads where alignment allows it.
#pragma once

#include "common/base/philox.h"
#include "cuda/op/dense/dropout_element.h"
#include "cuda/op/primitive/map.cuh"
#include "cuda/op/primitive/quad.cuh"

namespace cistern::op {

inline constexpr unsigned kOctet = 8;

template <typename Element, typename T>
__global__ void __launch_bounds__(kBlockThreads)
    DropoutKernel(const T* x, DropoutDraw draw, int32_t below, T* y, uint8_t* mask, size_t b,
                  size_t n, bool vectors, Element element) {
  const size_t row = size_t{blockIdx.x} * blockDim.y + threadIdx.y;
  if (row >= b) return;
  const size_t octets = CeilDivide(n, kOctet);
  const size_t step = size_t{gridDim.y} * blockDim.x;
  for (size_t o = size_t{blockIdx.y} * blockDim.x + threadIdx.x; o < octets; o += step) {
    const size_t first = o * kOctet;
    const size_t at = row * n + first;
    const unsigned width = n - first < kOctet ? static_cast<unsigned>(n - first) : kOctet;
    alignas(16) float in[kOctet];
    if (vectors) {  // n is a multiple of 4
      *reinterpret_cast<float4*>(in) = LoadQuad(x + at);
      if (width > 4) *reinterpret_cast<float4*>(in + 4) = LoadQuad(x + at + 4);
    } else {
#pragma unroll
      for (unsigned e = 0; e < kOctet; ++e) in[e] = e < width ? float{x[at + e]} : 0.0f;
    }
    const PhiloxBlock block = Philox(draw.seed, (draw.first_row + row) * octets + o, draw.sequence);
    alignas(16) float out[kOctet];
    Words<1> kept[2] = {};  // one byte per element
#pragma unroll
    for (unsigned e = 0; e < kOctet; ++e) {
      const auto half = static_cast<uint16_t>(block.word[e / 2] >> (e % 2 * 16));
      if (e < width) out[e] = element(in[e], first + e, half);
      kept[e / 4].word[0] |= (half < below ? 1u : 0u) << (e % 4 * 8);
    }
    if (mask != nullptr && vectors) {
      StoreWords(kept[0], mask + at);
      if (width > 4) StoreWords(kept[1], mask + at + 4);
    } else if (mask != nullptr) {
#pragma unroll
      for (unsigned e = 0; e < kOctet; ++e) {
        if (e < width) mask[at + e] = kept[e / 4].word[0] >> (e % 4 * 8) & 0xFF;
      }
    }
    if (vectors) {
      StoreQuad(y + at, *reinterpret_cast<const float4*>(out));
      if (width > 4) StoreQuad(y + at + 4, *reinterpret_cast<const float4*>(out + 4));
    } else {
#pragma unroll
      for (unsigned e = 0; e < kOctet; ++e) {
        if (e < width) y[at + e] = out[e];
      }
    }
  }
}

// y(r, c) = element(x(r, c), c, half-word of (r, c)). mask: as op::Dropout writes it, or null.
template <typename Element, typename T>
void DropoutRows(const char* op, const T* x, const DropoutDraw& draw, T* y, uint8_t* mask, size_t b,
                 size_t n, Stream& stream, const Element& element) {
  const bool vectors = n % 4 == 0 && HoldsQuads(x) && HoldsQuads(y) && HoldsPacks(mask, 4);
  const size_t octets = CeilDivide(n, kOctet);
  const dim3 block = RowBlock(octets);
  const dim3 grid(static_cast<unsigned>(CeilDivide(b, block.y)),
                  static_cast<unsigned>(std::min(CeilDivide(octets, block.x), kMaxGridY)));
  Launch(op, DropoutKernel<Element, T>, grid, block, 0, stream, x, draw, KeepBelow(draw.rate), y,
         mask, b, n, vectors, element);
}

}  // namespace cistern::op
