// Memory traffic for count elements of s bytes: Fill s, Scale 2 s, Accumulate 3 s, Add 3 s,
// Convert the sum of both element sizes; at most one FLOP each.
#include "cuda/op/dense/elementwise.h"

#include "cuda/op/primitive/map_packs.cuh"

namespace cistern::op::gpu {
namespace {

template <typename T>
void FillAll(float value, T* x, size_t count, Stream& stream) {
  MapArrays("Fill", count, Write::kOverwrite, x, stream, [=] __device__() { return value; });
}

template <typename T>
void AccumulateAll(const T* x, T* y, size_t count, Stream& stream) {
  MapArrays(
      "Accumulate", count, Write::kAccumulate, y, stream, [=] __device__(float in) { return in; },
      ArrayOf<T>{x});
}

template <typename T>
void AddAll(const T* a, const T* b, T* y, size_t count, Stream& stream) {
  MapArrays(
      "Add", count, Write::kOverwrite, y, stream,
      [=] __device__(float p, float q) { return p + q; }, ArrayOf<T>{a}, ArrayOf<T>{b});
}

template <typename From, typename To>
void ConvertAll(const From* x, To* y, size_t count, Stream& stream) {
  MapArrays(
      "Convert", count, Write::kOverwrite, y, stream, [=] __device__(float in) { return in; },
      ArrayOf<From>{x});
}

}  // namespace

void Fill(float value, Values x, size_t count, Stream& stream) {
  ForType(x.type, [&]<typename T>() { FillAll(value, As<T>(x), count, stream); });
}

void Scale(float factor, float* x, size_t count, Stream& stream) {
  MapArrays(
      "Scale", count, Write::kOverwrite, x, stream,
      [=] __device__(float in) { return in * factor; }, ArrayOf<float>{x});
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
