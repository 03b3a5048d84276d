// Forward: 2 b k n FLOPs, memory traffic s (b k + k n + n + b n) for elements of s bytes. Bias and
// ReLU are a cuBLASLt epilogue. Backward: 4 b k n FLOPs in two products. With n = 1 the op is
// memory-bound and has its own kernels: s b k bytes forward, 2 s b k backward.
//
// cuBLASLt's fast kernels for 16-bit elements need rows that begin at multiples of 16 bytes. If k
// or n is not a multiple of 8 (for example 429 = 26 slots of 16 and 13 dense features), products
// use WideColumns columns, padded with zeros: they read copies of x, W and dy and write copies of
// y, dx and dW, or take x and dx as they are if the layer before has padded them
// (FullyConnectedWide). If only a parameter is not aligned, because those before it have an odd
// number of elements, it alone is copied. Each copy costs twice the bytes of the matrix. Without
// them a product takes 3 times as long on an H100.
#include "cuda/op/dense/fully_connected.h"

#include <cstdint>
#include <utility>

#include "cuda/op/dense/copy_columns.h"
#include "cuda/op/dense/dropout_element.h"
#include "cuda/op/dense/elementwise.h"
#include "cuda/op/dense/gemm.h"
#include "cuda/op/dense/relu.h"
#include "cuda/op/primitive/map_packs.cuh"
#include "cuda/op/primitive/wide_sums.cuh"

namespace cistern::op::gpu {
namespace {

// Rows whose loads a thread has in flight together.
constexpr unsigned kDotRows = 4;

// y(r) = x(r) . weight + bias; blockDim.x threads per row, which load kCount elements at a time.
template <typename T, unsigned kCount>
__global__ void __launch_bounds__(kBlockThreads)
    DotRowsKernel(const T* x, const T* weight, const T* bias, T* y, size_t b, size_t k) {
  using Elements = Pack<T, kCount>;
  const size_t first = size_t{blockIdx.x} * kDotRows * blockDim.y + threadIdx.y;
  float dot[kDotRows] = {};
  for (size_t c = threadIdx.x * kCount; c < k; c += blockDim.x * kCount) {
    Elements row[kDotRows];
#pragma unroll
    for (unsigned i = 0; i < kDotRows; ++i) {
      const size_t r = first + i * blockDim.y;
      if (r < b) row[i] = Elements::Load(x + r * k + c);
    }
    const Elements factors = Elements::Load(weight + c);
#pragma unroll
    for (unsigned i = 0; i < kDotRows; ++i) {
      if (first + i * blockDim.y >= b) continue;
#pragma unroll
      for (unsigned e = 0; e < kCount; ++e) dot[i] += row[i][e] * factors[e];
    }
  }
  const float shift = bias == nullptr ? 0.0f : float{bias[0]};
#pragma unroll
  for (unsigned i = 0; i < kDotRows; ++i) {
    const float sum = SumOverRow(dot[i]);
    const size_t r = first + i * blockDim.y;
    if (threadIdx.x == 0 && r < b) y[r] = sum + shift;
  }
}

template <typename T>
void DotRows(const T* x, const T* weight, const T* bias, T* y, size_t b, size_t k, Stream& stream) {
  const bool wide = IsWide(x, k) && IsWide(weight, k);
  const dim3 block = RowBlock(wide ? k / kWide<T> : k, kWarp);
  Launch("FullyConnected", wide ? DotRowsKernel<T, kWide<T>> : DotRowsKernel<T, 1>,
         dim3(static_cast<unsigned>(CeilDivide(b, kDotRows * block.y))), block, 0, stream, x,
         weight, bias, y, b, k);
}

// The backward pass with n = 1, which reads x once: dweight(c) = the sum of dy(r) x(r, c), and
// dx(r, c) = dy(r) weight(c), or += with `adds`; with `behind_relu` only where x > 0, else 0.
template <typename T>
struct DotBackwardTerms {
  static constexpr unsigned kColumns = kWide<T>;
  struct Loaded {
    Wide<T> x;
    T dy;
  };
  const T *x, *dy, *weight;
  T* dx;  // or null
  bool behind_relu, adds;
  size_t k;

  __device__ void Load(size_t r, size_t at, Loaded* loaded) const {
    loaded->x = Wide<T>::Load(x + at);
    loaded->dy = dy[r];
  }
  __device__ void Add(const Loaded& loaded, size_t at, size_t c, float* sum) const {
    const float g = loaded.dy;
#pragma unroll
    for (unsigned e = 0; e < kColumns; ++e) sum[e] += g * loaded.x[e];
    if (dx == nullptr) return;
    const Wide<T> factors = Wide<T>::Load(weight + c);
    Wide<T> made, before;
    if (adds) before = Wide<T>::Load(dx + at);
#pragma unroll
    for (unsigned e = 0; e < kColumns; ++e) {
      const float value = Gradient(loaded.x[e], g, factors[e]);
      made.Set(e, adds ? RoundedSum(before[e], value) : value);
    }
    made.Store(dx + at);
  }
  // The same for one element.
  __device__ void AddOne(size_t r, size_t c, float* sum) const {
    const float in = x[r * k + c], g = dy[r];
    *sum += g * in;
    if (dx == nullptr) return;
    T* to = dx + r * k + c;
    const float value = Gradient(in, g, weight[c]);
    *to = adds ? RoundedSum(*to, value) : value;
  }
  __device__ float Gradient(float in, float g, float factor) const {
    return behind_relu ? BehindRelu(in, g * factor, 1.0f) : g * factor;
  }
};

template <typename T>
void DotBackward(const DotBackwardTerms<T>& terms, float* dweight, size_t b, size_t k,
                 float* scratch, Stream& stream) {
  const char* op = "FullyConnectedBackward";
  const bool wide_dx = terms.dx == nullptr || (IsWide(terms.dx, k) && IsWide(terms.weight, k));
  if (IsWide(terms.x, k) && wide_dx) {
    WideSums(op, b, k, scratch, stream, terms);
  } else {
    ColumnSums<1>(op, b, k, scratch, stream,
                  [=] __device__(size_t r, size_t c, float* sum) { terms.AddOne(r, c, sum); });
  }
  AddBlocks(op, scratch, 1, CeilDivide(b, kRowsOfBlock), k, dweight, nullptr, stream);
}

template <typename T>
void AddBias(const T* bias, T* y, size_t b, size_t n, Stream& stream) {
  MapRows("FullyConnected: bias", b, n, Write::kAccumulate, y, n, stream,
          [=] __device__(size_t, size_t c) { return float{bias[c]}; });
}

// Computes the product with the library. True if it is enqueued or the stream has an error; false
// if the product is empty or the library has no kernel for it.
bool Made(const char* op, const BlasProduct& product, Stream& stream) {
  if (product.m == 0 || product.n == 0 || product.k == 0) return false;
  if (!stream.status().ok()) return true;
  const absl::StatusOr<Blas*> blas = stream.queue()->blas();
  const absl::Status status =
      blas.ok() ? (*blas)->Multiply(product, stream.queue()->stream()) : blas.status();
  if (absl::IsUnimplemented(status)) return false;
  if (!status.ok()) stream.Record(AddContext(status, op));
  return true;
}

// Copies padded to k rows of the weight and n columns, in scratch (FullyConnectedScratchFloats).
// Null if not needed.
struct Wider {
  size_t k, n;               // the original ones where nothing is padded
  Values weight = nullptr;   // [k, n]
  float* dweight = nullptr;  // [k, n]
  Values x = nullptr;        // [b, k], of a wider k unless x is wide; also receives dx
  Values y = nullptr;        // [b, n], of a wider n; also holds dy
  Values bias = nullptr;     // [n]
};
Wider WiderOf(ConstValues weight, const void* bias, const float* dweight, size_t b, size_t k,
              size_t n, float* scratch, bool wide_x = false) {
  const ElementType type = weight.type;
  Wider to = {WideColumns(type, k), WideColumns(type, n)};
  if (type == ElementType::kFloat) return to;
  const auto take = [&scratch](size_t floats) { return std::exchange(scratch, scratch + floats); };
  const bool pads = to.k > k || to.n > n;
  const auto is_odd = [](const void* p) { return reinterpret_cast<uintptr_t>(p) % 16 != 0; };
  if (pads || is_odd(weight.data)) to.weight = {take(to.k * to.n / 2), type};
  if (pads || is_odd(dweight)) to.dweight = take(to.k * to.n);
  if (to.k > k && !wide_x) to.x = {take(b * to.k / 2), type};
  if (to.n > n) to.y = {take(b * to.n / 2), type};
  if (to.n > n || is_odd(bias)) to.bias = {take(to.n / 2), type};
  return to;
}

// A thread writes one pack of `to` [wide_rows, wide], zero where x [rows, n] has no element.
template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    PadKernel(const T* x, size_t rows, size_t n, size_t wide_rows, size_t wide, T* to) {
  constexpr unsigned kCount = 16 / sizeof(T);
  const size_t packs = wide / kCount, i = size_t{blockIdx.x} * kBlockThreads + threadIdx.x;
  const size_t r = i / packs, c = i % packs * kCount;
  if (r >= wide_rows) return;
  float element[kCount];
#pragma unroll
  for (unsigned e = 0; e < kCount; ++e) {
    element[e] = r < rows && c + e < n ? float{x[r * n + c + e]} : 0.0f;
  }
  Pack<T, kCount> pack;
#pragma unroll
  for (unsigned e = 0; e < kCount; ++e) pack.Set(e, element[e]);
  pack.Store(to + r * wide + c);
}
void Pad(ConstValues x, size_t rows, size_t n, size_t wide_rows, size_t wide, Values to,
         Stream& stream) {
  ForType(x.type, [&]<typename T>() {
    const size_t packs = wide_rows * (wide / (16 / sizeof(T)));
    Launch("FullyConnected: padding", PadKernel<T>,
           dim3(static_cast<unsigned>(CeilDivide(packs, kBlockThreads))), dim3(kBlockThreads), 0,
           stream, As<T>(x), rows, n, wide_rows, wide, As<T>(to));
  });
}

// The padded copies of a forward pass; the product writes wider.y if it is wider than y.
BlasProduct ForwardProduct(ConstValues x, ConstValues weight, ConstValues bias, Values y, size_t b,
                           size_t k, size_t n, const Wider& wider, Stream& stream) {
  if (wider.x.data != nullptr) {
    Pad(x, b, k, b, wider.k, wider.x, stream);
    x = wider.x;
  }
  if (wider.weight.data != nullptr) {
    Pad(weight, k, n, wider.k, wider.n, wider.weight, stream);
    weight = wider.weight;
  }
  if (bias.data != nullptr && wider.bias.data != nullptr) {
    Pad(bias, 1, n, 1, wider.n, wider.bias, stream);
    bias = wider.bias;
  }
  if (wider.n > n) y = wider.y;
  const ProductPrecision precision = stream.product_precision();
  BlasProduct product = {false, false, b, wider.n, wider.k, x, weight, false, y, precision};
  if (bias.data != nullptr) product.epilogue = BlasEpilogue::kBias;
  product.bias = bias;
  return product;
}

// Computes y with `product`, which ForwardProduct made. False as Made.
bool MadeForward(const char* op, const BlasProduct& product, Values y, size_t b, size_t n,
                 const Wider& wider, Stream& stream) {
  if (!Made(op, product, stream)) return false;
  if (wider.n > n) op::CopyColumns(wider.y, wider.n, Write::kOverwrite, y, n, b, n, stream);
  return true;
}

// wide_dy: dy, or its padded copy.
void WeightGradient(ConstValues x, ConstValues wide_dy, float* dweight, size_t b, size_t k,
                    size_t n, const Wider& wider, Stream& stream) {
  if (wider.dweight == nullptr) {
    return op::Gemm(Transpose::kYes, Transpose::kNo, k, n, b, x, wide_dy, Write::kOverwrite,
                    dweight, stream);
  }
  if (wider.x.data != nullptr) {
    Pad(x, b, k, b, wider.k, wider.x, stream);
    x = wider.x;
  }
  op::Gemm(Transpose::kYes, Transpose::kNo, wider.k, wider.n, b, x, wide_dy, Write::kOverwrite,
           wider.dweight, stream);
  op::CopyColumns(wider.dweight, wider.n, Write::kOverwrite, dweight, n, k, n, stream);
}

// dx = dy W^T, or +=.
void InputGradient(ConstValues weight, ConstValues wide_dy, Write write, Values dx, size_t b,
                   size_t k, size_t n, const Wider& wider, Stream& stream) {
  if (wider.weight.data != nullptr) {
    Pad(weight, k, n, wider.k, wider.n, wider.weight, stream);
    weight = wider.weight;
  }
  if (wider.x.data == nullptr) {
    return op::Gemm(Transpose::kNo, Transpose::kYes, b, wider.k, wider.n, wide_dy, weight, write,
                    dx, stream);
  }
  if (write == Write::kAccumulate) Pad(dx, b, k, b, wider.k, wider.x, stream);
  op::Gemm(Transpose::kNo, Transpose::kYes, b, wider.k, wider.n, wide_dy, weight, write, wider.x,
           stream);
  op::CopyColumns(wider.x, wider.k, Write::kOverwrite, dx, k, b, k, stream);
}

// FullyConnectedBackward with n > 1. wide_x: rows of x and dx are padded.
void ProductBackward(ConstValues x, ConstValues weight, ConstValues dy, Write dx_write, Values dx,
                     float* dweight, size_t b, size_t k, size_t n, bool wide_x, float* scratch,
                     Stream& stream) {
  const Wider wider = WiderOf(weight, nullptr, dweight, b, k, n, scratch, wide_x);
  ConstValues wide_dy = dy;
  if (wider.n > n) {
    Pad(dy, b, n, b, wider.n, wider.y, stream);
    wide_dy = wider.y;
  }
  WeightGradient(x, wide_dy, dweight, b, k, n, wider, stream);
  if (dx == nullptr) return;
  InputGradient(weight, wide_dy, dx_write, dx, b, k, n, wider, stream);
}

}  // namespace

void FullyConnected(ConstValues x, ConstValues weight, ConstValues bias, Values y, size_t b,
                    size_t k, size_t n, float* scratch, Stream& stream) {
  if (n == 1) {
    return ForType(x.type, [&]<typename T>() {
      DotRows(As<T>(x), As<T>(weight), As<T>(bias), As<T>(y), b, k, stream);
    });
  }
  const Wider wider = WiderOf(weight, bias.data, nullptr, b, k, n, scratch);
  const BlasProduct product = ForwardProduct(x, weight, bias, y, b, k, n, wider, stream);
  if (MadeForward("FullyConnected", product, y, b, n, wider, stream)) return;
  op::Gemm(Transpose::kNo, Transpose::kNo, b, n, k, x, weight, Write::kOverwrite, y, stream);
  if (bias.data == nullptr) return;
  ForType(x.type, [&]<typename T>() { AddBias(As<T>(bias), As<T>(y), b, n, stream); });
}

void FullyConnectedRelu(ConstValues x, ConstValues weight, ConstValues bias, Values y, size_t b,
                        size_t k, size_t n, float* scratch, Stream& stream) {
  if (n > 1 && bias.data != nullptr) {
    const Wider wider = WiderOf(weight, bias.data, nullptr, b, k, n, scratch);
    BlasProduct product = ForwardProduct(x, weight, bias, y, b, k, n, wider, stream);
    product.epilogue = BlasEpilogue::kBiasRelu;
    if (MadeForward("FullyConnectedRelu", product, y, b, n, wider, stream)) return;
  }
  op::FullyConnected(x, weight, bias, y, b, k, n, scratch, stream);
  op::Relu(y, y, b * n, stream);
}

void FullyConnectedBackward(ConstValues x, ConstValues weight, ConstValues dy, Write dx_write,
                            Values dx, float* dweight, size_t b, size_t k, size_t n, float* scratch,
                            Stream& stream) {
  if (n == 1) {
    const bool adds = dx != nullptr && dx_write == Write::kAccumulate;
    return ForType(x.type, [&]<typename T>() {
      DotBackward<T>(
          {As<T>(x), As<T>(dy), As<T>(weight), As<T>(dx), /*behind_relu=*/false, adds, k}, dweight,
          b, k, scratch, stream);
    });
  }
  ProductBackward(x, weight, dy, dx_write, dx, dweight, b, k, n, /*wide_x=*/false, scratch, stream);
}

void FullyConnectedWide(ConstValues x, ConstValues weight, ConstValues bias, bool relu, Values y,
                        size_t b, size_t k, size_t n, float* scratch, Stream& stream) {
  const Wider wider = WiderOf(weight, bias.data, nullptr, b, k, n, scratch, /*wide_x=*/true);
  BlasProduct product = ForwardProduct(x, weight, bias, y, b, k, n, wider, stream);
  const bool fuses_relu = relu && bias.data != nullptr;
  if (fuses_relu) product.epilogue = BlasEpilogue::kBiasRelu;
  const bool made = MadeForward("FullyConnectedWide", product, y, b, n, wider, stream);
  if (!made) {
    op::Gemm(Transpose::kNo, Transpose::kNo, b, wider.n, wider.k, product.a, product.b,
             Write::kOverwrite, product.c, stream);
    if (wider.n > n) op::CopyColumns(wider.y, wider.n, Write::kOverwrite, y, n, b, n, stream);
    ForType(x.type, [&]<typename T>() {
      if (bias.data != nullptr) AddBias(As<T>(bias), As<T>(y), b, n, stream);
    });
  }
  if (relu && !(made && fuses_relu)) op::Relu(y, y, b * n, stream);
}

void FullyConnectedWideBackward(ConstValues x, ConstValues weight, ConstValues dy, Write dx_write,
                                Values dx, float* dweight, size_t b, size_t k, size_t n,
                                float* scratch, Stream& stream) {
  ProductBackward(x, weight, dy, dx_write, dx, dweight, b, k, n, /*wide_x=*/true, scratch, stream);
}

void DotBackwardBehindRelu(ConstValues x, ConstValues weight, ConstValues dy, Values dx,
                           float* dweight, size_t b, size_t k, float* scratch, Stream& stream) {
  ForType(x.type, [&]<typename T>() {
    DotBackward<T>(
        {As<T>(x), As<T>(dy), As<T>(weight), As<T>(dx), /*behind_relu=*/true, /*adds=*/false, k},
        dweight, b, k, scratch, stream);
  });
}

}  // namespace cistern::op::gpu
