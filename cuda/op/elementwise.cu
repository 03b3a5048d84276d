// Bytes that must move, for count elements of s bytes: Fill s, Scale 2 s, Accumulate 3 s, Add 3 s,
// Convert those of both types; at most one FLOP each.
#include "cuda/op/elementwise.h"

#include "cuda/op/map.cuh"

namespace cistern::op::gpu {
namespace {

template <typename T>
void FillAll(float value, T* x, size_t count, Stream& stream) {
  Map("Fill", count, Write::kOverwrite, x, stream, [=] __device__(size_t) { return value; });
}

template <typename T>
void AccumulateAll(const T* x, T* y, size_t count, Stream& stream) {
  Map("Accumulate", count, Write::kAccumulate, y, stream,
      [=] __device__(size_t i) { return float{x[i]}; });
}

template <typename T>
void AddAll(const T* a, const T* b, T* y, size_t count, Stream& stream) {
  Map("Add", count, Write::kOverwrite, y, stream,
      [=] __device__(size_t i) { return float{a[i]} + float{b[i]}; });
}

template <typename From, typename To>
void ConvertAll(const From* x, To* y, size_t count, Stream& stream) {
  Map("Convert", count, Write::kOverwrite, y, stream,
      [=] __device__(size_t i) { return float{x[i]}; });
}

}  // namespace

void Fill(float value, Values x, size_t count, Stream& stream) {
  ForType(x.type, [&]<typename T>() { FillAll(value, As<T>(x), count, stream); });
}

void Scale(float factor, float* x, size_t count, Stream& stream) {
  Map("Scale", count, Write::kOverwrite, x, stream,
      [=] __device__(size_t i) { return x[i] * factor; });
}

void Accumulate(ConstValues x, Values y, size_t count, Stream& stream) {
  ForType(x.type, [&]<typename T>() { AccumulateAll(As<T>(x), As<T>(y), count, stream); });
}

void Add(ConstValues a, ConstValues b, Values y, size_t count, Stream& stream) {
  ForType(y.type, [&]<typename T>() { AddAll(As<T>(a), As<T>(b), As<T>(y), count, stream); });
}

void Convert(ConstValues x, Values y, size_t count, Stream& stream) {
  if (x.type == ElementType::kFloat) {
    ForType(y.type, [&]<typename T>() { ConvertAll(As<float>(x), As<T>(y), count, stream); });
  } else {
    ForType(x.type, [&]<typename T>() { ConvertAll(As<T>(x), As<float>(y), count, stream); });
  }
}

}  // namespace cistern::op::gpu
