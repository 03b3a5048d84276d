#include "cuda/op/dense/elementwise.h"

#include "cuda/op/primitive/cpu.h"
#include "cuda/op/primitive/element.h"

namespace cistern::op {

namespace gpu {  // elementwise.cu
decltype(op::Fill) Fill;
decltype(op::Scale) Scale;
decltype(op::Accumulate) Accumulate;
decltype(op::Add) Add;
decltype(op::Convert) Convert;
}  // namespace gpu

namespace {

template <typename From, typename To>
void ConvertAll(const From* x, To* y, size_t count) {
  ForPieces(count, kElementGrain, 2 * count, [=](size_t begin, size_t end) {
#pragma omp simd
    for (size_t i = begin; i < end; ++i) y[i] = To(float{x[i]});
  });
}

}  // namespace

void Fill(float value, Values x, size_t count, Stream& stream) {
  CISTERN_RUN_ON_GPU(Fill, value, x, count);
  ForType(x.type, [&]<typename T>() {
    T* to = As<T>(x);
    ForPieces(count, kElementGrain, count,
              [=](size_t begin, size_t end) { std::fill(to + begin, to + end, T(value)); });
  });
}

void Scale(float factor, float* x, size_t count, Stream& stream) {
  CISTERN_RUN_ON_GPU(Scale, factor, x, count);
  ForPieces(count, kElementGrain, 2 * count, [=](size_t begin, size_t end) {
#pragma omp simd
    for (size_t i = begin; i < end; ++i) x[i] *= factor;
  });
}

void Accumulate(ConstValues x, Values y, size_t count, Stream& stream) {
  CISTERN_RUN_ON_GPU(Accumulate, x, y, count);
  ForType(x.type, [&]<typename T>() {
    const T* from = As<T>(x);
    T* to = As<T>(y);
    ForPieces(count, kElementGrain, 2 * count, [=](size_t begin, size_t end) {
#pragma omp simd
      for (size_t i = begin; i < end; ++i) to[i] += from[i];
    });
  });
}

void Add(ConstValues a, ConstValues b, Values y, size_t count, Stream& stream) {
  CISTERN_RUN_ON_GPU(Add, a, b, y, count);
  ForType(y.type, [&]<typename T>() {
    const T *left = As<T>(a), *right = As<T>(b);
    T* to = As<T>(y);
    ForPieces(count, kElementGrain, 3 * count, [=](size_t begin, size_t end) {
#pragma omp simd
      for (size_t i = begin; i < end; ++i) to[i] = left[i] + right[i];
    });
  });
}

void Convert(ConstValues x, Values y, size_t count, Stream& stream) {
  CISTERN_RUN_ON_GPU(Convert, x, y, count);
  if (x.type == ElementType::kFloat) {
    ForType(y.type, [&]<typename T>() { ConvertAll(As<float>(x), As<T>(y), count); });
  } else {
    ForType(x.type, [&]<typename T>() { ConvertAll(As<T>(x), As<float>(y), count); });
  }
}

}  // namespace cistern::op
