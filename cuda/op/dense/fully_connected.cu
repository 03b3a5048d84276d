// Forward: 2 b k n FLOPs, memory traffic s (b k + k n + n + b n) for elements of s bytes. Bias and
// ReLU are a cuBLASLt epilogue, whose mask has b n / 8 bytes. Backward: 4 b k n FLOPs in two
// products. The backward pass of the ReLU in front is the epilogue of one of them or, if the
// library has no such kernel, a separate sweep of 3 s b k. With n = 1 the op is memory-bound and
// has its own kernels: s b k bytes per pass, and as much to read x for the ReLU in front.
//
// cuBLASLt's fast kernels for 16-bit elements need rows that begin at multiples of 16 bytes. If k
// or n is not a multiple of 8 (for example 429 = 26 slots of 16 and 13 dense features), products
// use WideColumns columns, padded with zeros: they read copies of x, W and dy and write copies of
// y, dx and dW. If only a parameter is not aligned, because those before it have an odd number of
// elements, it alone is copied. Each copy costs twice the bytes of the matrix. Without them a
// product takes 3 times as long on an H100.
#include "cuda/op/dense/fully_connected.h"

#include <cstdint>
#include <utility>

#include "cuda/op/dense/copy_columns.h"
#include "cuda/op/dense/dropout_element.h"
#include "cuda/op/dense/elementwise.h"
#include "cuda/op/dense/gemm.h"
#include "cuda/op/dense/relu.h"
#include "cuda/op/primitive/pack.cuh"
#include "cuda/op/primitive/reduce.cuh"

namespace cistern::op::gpu {
namespace {

// y(r) = x(r) . weight + bias; blockDim.x threads per row.
template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    DotRowsKernel(const T* x, const T* weight, const T* bias, T* y, size_t b, size_t k) {
  const size_t r = size_t{blockIdx.x} * blockDim.y + threadIdx.y;
  float dot = 0.0f;
  if (r < b) {
#pragma unroll 4
    for (size_t c = threadIdx.x; c < k; c += blockDim.x) dot += x[r * k + c] * weight[c];
  }
  for (unsigned offset = blockDim.x / 2; offset > 0; offset /= 2) {
    dot += __shfl_xor_sync(kFullWarp, dot, static_cast<int>(offset));
  }
  if (threadIdx.x == 0 && r < b) y[r] = dot + (bias == nullptr ? 0.0f : float{bias[0]});
}

// out(c) = the sum over the rows of factor(r) * x(r, c).
template <typename T>
void WeightedColumnSums(const char* op, const T* x, const T* factor, size_t b, size_t n,
                        float* scratch, float* out, Stream& stream) {
  ColumnSums<1>(op, b, n, scratch, stream, [=] __device__(size_t r, size_t c, float* sum) {
    sum[0] += factor[r] * x[r * n + c];
  });
  AddBlocks(op, scratch, 1, CeilDivide(b, kRowsOfBlock), n, out, nullptr, stream);
}

template <typename T>
void AddBias(const T* bias, T* y, size_t b, size_t n, Stream& stream) {
  MapRows("FullyConnected: bias", b, n, Write::kAccumulate, y, n, stream,
          [=] __device__(size_t, size_t c) { return float{bias[c]}; });
}

// dx(r, c) = dy(r) weight(c), for n = 1; behind_relu: only where x > 0, else 0.
template <typename T>
void OuterProduct(const T* x, const T* dy, const T* weight, bool behind_relu, Write write, T* dx,
                  size_t b, size_t k, Stream& stream) {
  MapRows("FullyConnectedBackward: dx", b, k, write, dx, k, stream,
          [=] __device__(size_t r, size_t c) {
            const float made = dy[r] * weight[c];
            return behind_relu ? BehindRelu(x[r * k + c], made, 1.0f) : made;
          });
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
  Values x = nullptr;        // [b, k], of a wider k; also receives dx
  Values y = nullptr;        // [b, n], of a wider n; also holds dy
  Values bias = nullptr;     // [n]
};
Wider WiderOf(ConstValues weight, const void* bias, const float* dweight, size_t b, size_t k,
              size_t n, float* scratch) {
  const ElementType type = weight.type;
  Wider to = {WideColumns(type, k), WideColumns(type, n)};
  if (type == ElementType::kFloat) return to;
  const auto take = [&scratch](size_t floats) { return std::exchange(scratch, scratch + floats); };
  const bool pads = to.k > k || to.n > n;
  const auto is_odd = [](const void* p) { return reinterpret_cast<uintptr_t>(p) % 16 != 0; };
  if (pads || is_odd(weight.data)) to.weight = {take(to.k * to.n / 2), type};
  if (pads || is_odd(dweight)) to.dweight = take(to.k * to.n);
  if (to.k > k) to.x = {take(b * to.k / 2), type};
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
  if (wider.k > k) {
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
void WeightGradient(ConstValues x, ConstValues dy, ConstValues wide_dy, float* dweight, size_t b,
                    size_t k, size_t n, const Wider& wider, float* scratch, Stream& stream) {
  if (n == 1) {
    return ForType(x.type, [&]<typename T>() {
      WeightedColumnSums("FullyConnectedBackward: dweight", As<T>(x), As<T>(dy), b, k, scratch,
                         dweight, stream);
    });
  }
  if (wider.dweight == nullptr) {
    return op::Gemm(Transpose::kYes, Transpose::kNo, k, n, b, x, dy, Write::kOverwrite, dweight,
                    stream);
  }
  if (wider.k > k) {
    Pad(x, b, k, b, wider.k, wider.x, stream);
    x = wider.x;
  }
  op::Gemm(Transpose::kYes, Transpose::kNo, wider.k, wider.n, b, x, wide_dy, Write::kOverwrite,
           wider.dweight, stream);
  op::CopyColumns(wider.dweight, wider.n, Write::kOverwrite, dweight, n, k, n, stream);
}

// dx = dy W^T, or +=, without a ReLU in front.
void PlainInputGradient(ConstValues weight, ConstValues wide_dy, Write write, Values dx, size_t b,
                        size_t k, size_t n, const Wider& wider, Stream& stream) {
  if (wider.weight.data != nullptr) {
    Pad(weight, k, n, wider.k, wider.n, wider.weight, stream);
    weight = wider.weight;
  }
  if (wider.k == k) {
    return op::Gemm(Transpose::kNo, Transpose::kYes, b, k, wider.n, wide_dy, weight, write, dx,
                    stream);
  }
  if (write == Write::kAccumulate) Pad(dx, b, k, b, wider.k, wider.x, stream);
  op::Gemm(Transpose::kNo, Transpose::kYes, b, wider.k, wider.n, wide_dy, weight, write, wider.x,
           stream);
  op::CopyColumns(wider.x, wider.k, Write::kOverwrite, dx, k, b, k, stream);
}

// x_mask: null unless x is the output of a ReLU and dx the gradient of the ReLU's input.
void InputGradient(ConstValues x, const ReluMask* x_mask, ConstValues weight, ConstValues dy,
                   ConstValues wide_dy, Write write, Values dx, size_t b, size_t k, size_t n,
                   const Wider& wider, Stream& stream) {
  if (n == 1) {
    return ForType(x.type, [&]<typename T>() {
      OuterProduct(As<T>(x), As<T>(dy), As<T>(weight), x_mask != nullptr, write, As<T>(dx), b, k,
                   stream);
    });
  }
  if (x_mask != nullptr && x_mask->is_made) {
    BlasProduct product = {false, true, b, k, n, dy, weight, false, dx, stream.product_precision()};
    product.epilogue = BlasEpilogue::kReluBackward;
    product.mask = x_mask->bits;
    product.mask_stride = ReluMaskStride(k);
    if (Made("FullyConnectedBackward", product, stream)) return;
  }
  PlainInputGradient(weight, wide_dy, write, dx, b, k, n, wider, stream);
  if (x_mask == nullptr) return;
  op::ReluBackward(x, dx, Write::kOverwrite, dx, b * k, stream);
}

void Backward(ConstValues x, const ReluMask* x_mask, ConstValues weight, ConstValues dy,
              Write dx_write, Values dx, float* dweight, size_t b, size_t k, size_t n,
              float* scratch, Stream& stream) {
  const Wider wider = n == 1 ? Wider{k, n} : WiderOf(weight, nullptr, dweight, b, k, n, scratch);
  ConstValues wide_dy = dy;
  if (wider.n > n) {
    Pad(dy, b, n, b, wider.n, wider.y, stream);
    wide_dy = wider.y;
  }
  WeightGradient(x, dy, wide_dy, dweight, b, k, n, wider, scratch, stream);
  if (dx == nullptr) return;
  InputGradient(x, x_mask, weight, dy, wide_dy, dx_write, dx, b, k, n, wider, stream);
}

}  // namespace

void FullyConnected(ConstValues x, ConstValues weight, ConstValues bias, Values y, size_t b,
                    size_t k, size_t n, float* scratch, Stream& stream) {
  if (n == 1) {
    const dim3 block = RowBlock(k, kWarp);
    return ForType(x.type, [&]<typename T>() {
      Launch("FullyConnected", DotRowsKernel<T>,
             dim3(static_cast<unsigned>(CeilDivide(b, block.y))), block, 0, stream, As<T>(x),
             As<T>(weight), As<T>(bias), As<T>(y), b, k);
    });
  }
  const Wider wider = WiderOf(weight, bias.data, nullptr, b, k, n, scratch);
  const BlasProduct product = ForwardProduct(x, weight, bias, y, b, k, n, wider, stream);
  if (MadeForward("FullyConnected", product, y, b, n, wider, stream)) return;
  op::Gemm(Transpose::kNo, Transpose::kNo, b, n, k, x, weight, Write::kOverwrite, y, stream);
  if (bias.data == nullptr) return;
  ForType(x.type, [&]<typename T>() { AddBias(As<T>(bias), As<T>(y), b, n, stream); });
}

void FullyConnectedRelu(ConstValues x, ConstValues weight, ConstValues bias, Values y,
                        ReluMask* mask, size_t b, size_t k, size_t n, float* scratch,
                        Stream& stream) {
  mask->is_made = false;
  if (n > 1 && bias.data != nullptr) {
    const Wider wider = WiderOf(weight, bias.data, nullptr, b, k, n, scratch);
    BlasProduct product = ForwardProduct(x, weight, bias, y, b, k, n, wider, stream);
    product.epilogue = BlasEpilogue::kBiasRelu;
    product.mask = wider.n > n ? nullptr : mask->bits;
    product.mask_stride = ReluMaskStride(n);
    const bool wanted = product.mask != nullptr;
    if (MadeForward("FullyConnectedRelu", product, y, b, n, wider, stream)) {
      mask->is_made = wanted;
      return;
    }
    product.mask = nullptr;
    if (wanted && MadeForward("FullyConnectedRelu", product, y, b, n, wider, stream)) return;
  }
  op::FullyConnected(x, weight, bias, y, b, k, n, scratch, stream);
  op::Relu(y, y, b * n, stream);
}

void FullyConnectedBackward(ConstValues x, ConstValues weight, ConstValues dy, Write dx_write,
                            Values dx, float* dweight, size_t b, size_t k, size_t n, float* scratch,
                            Stream& stream) {
  Backward(x, nullptr, weight, dy, dx_write, dx, dweight, b, k, n, scratch, stream);
}

void FullyConnectedBackwardBehindRelu(ConstValues x, const ReluMask& x_mask, ConstValues weight,
                                      ConstValues dy, Values dx, float* dweight, size_t b, size_t k,
                                      size_t n, float* scratch, Stream& stream) {
  Backward(x, &x_mask, weight, dy, Write::kOverwrite, dx, dweight, b, k, n, scratch, stream);
}

}  // namespace cistern::op::gpu
