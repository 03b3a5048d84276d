// Forward: 2 b k n FLOPs, memory traffic s (b k + k n + n + b n) for elements of s bytes. Bias and
// ReLU are a cuBLASLt epilogue, whose mask has b n / 8 bytes. Backward: 4 b k n FLOPs in two
// products. The backward pass of the ReLU in front is the epilogue of one of them or, if the
// library has no such kernel, a separate sweep of 3 s b k. With n = 1 the op is memory-bound and
// has its own kernels: s b k bytes per pass, and as much to read x for the ReLU in front.
//
// If k is not a multiple of 8 (for example 429 = 26 slots of 16 and 13 dense features), 16-bit
// products use k' = WideColumns columns, padded with zeros: they read copies of x and W and write
// copies of dx and dW. This costs 2 s b k bytes more in each direction, and 2 s b k for dx.
#include "cuda/op/dense/fully_connected.h"

#include "cuda/op/dense/copy_columns.h"
#include "cuda/op/dense/dropout_element.h"
#include "cuda/op/dense/elementwise.h"
#include "cuda/op/dense/gemm.h"
#include "cuda/op/dense/relu.h"
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

// Copies padded to a wider k, in scratch.
struct Wider {
  size_t k;          // the original k if nothing is copied
  Values x, weight;  // [b, k], [k, n]; x also receives dx
  float* dweight;    // [k, n]
};
Wider WiderOf(ElementType type, size_t b, size_t k, size_t n, float* scratch) {
  const size_t wide = WideColumns(type, k);
  float* weight = scratch + b * wide / 2;
  return {wide, {scratch, type}, {weight, type}, weight + wide * n / 2};
}

// to: [b, wide]; x is [b, k], and the additional columns are zero.
template <typename T>
void WidenOf(const T* x, size_t b, size_t k, size_t wide, T* to, Stream& stream) {
  MapRows("FullyConnected: wider rows", b, wide, Write::kOverwrite, to, wide, stream,
          [=] __device__(size_t r, size_t c) { return c < k ? float{x[r * k + c]} : 0.0f; });
}
void Widen(ConstValues x, size_t b, size_t k, size_t wide, Values to, Stream& stream) {
  ForType(x.type, [&]<typename T>() { WidenOf(As<T>(x), b, k, wide, As<T>(to), stream); });
}

// to: [wide, n]; weight is [k, n], and the additional rows are zero.
template <typename T>
void LengthenOf(const T* weight, size_t k, size_t n, size_t wide, T* to, Stream& stream) {
  Map("FullyConnected: more rows", wide * n, Write::kOverwrite, to, stream,
      [=] __device__(size_t i) { return i < k * n ? float{weight[i]} : 0.0f; });
}
void Lengthen(ConstValues weight, size_t k, size_t n, size_t wide, Values to, Stream& stream) {
  ForType(weight.type,
          [&]<typename T>() { LengthenOf(As<T>(weight), k, n, wide, As<T>(to), stream); });
}

BlasProduct ForwardProduct(ConstValues x, ConstValues weight, ConstValues bias, Values y, size_t b,
                           size_t k, size_t n, float* scratch, Stream& stream) {
  const Wider wider = WiderOf(x.type, b, k, n, scratch);
  if (wider.k > k) {
    Widen(x, b, k, wider.k, wider.x, stream);
    Lengthen(weight, k, n, wider.k, wider.weight, stream);
    x = wider.x;
    weight = wider.weight;
  }
  const ProductPrecision precision = stream.product_precision();
  BlasProduct product = {false, false, b, n, wider.k, x, weight, false, y, precision};
  if (bias.data != nullptr) product.epilogue = BlasEpilogue::kBias;
  product.bias = bias;
  return product;
}

void WeightGradient(ConstValues x, ConstValues dy, float* dweight, size_t b, size_t k, size_t n,
                    float* scratch, Stream& stream) {
  if (n == 1) {
    return ForType(x.type, [&]<typename T>() {
      WeightedColumnSums("FullyConnectedBackward: dweight", As<T>(x), As<T>(dy), b, k, scratch,
                         dweight, stream);
    });
  }
  const Wider wider = WiderOf(x.type, b, k, n, scratch);
  if (wider.k == k) {
    return op::Gemm(Transpose::kYes, Transpose::kNo, k, n, b, x, dy, Write::kOverwrite, dweight,
                    stream);
  }
  Widen(x, b, k, wider.k, wider.x, stream);
  op::Gemm(Transpose::kYes, Transpose::kNo, wider.k, n, b, wider.x, dy, Write::kOverwrite,
           wider.dweight, stream);
  op::CopyColumns(wider.dweight, n, Write::kOverwrite, dweight, n, k, n, stream);
}

// dx = dy W^T, or +=, without a ReLU in front.
void PlainInputGradient(ConstValues weight, ConstValues dy, Write write, Values dx, size_t b,
                        size_t k, size_t n, float* scratch, Stream& stream) {
  const Wider wider = WiderOf(dx.type, b, k, n, scratch);
  if (wider.k == k) {
    return op::Gemm(Transpose::kNo, Transpose::kYes, b, k, n, dy, weight, write, dx, stream);
  }
  Lengthen(weight, k, n, wider.k, wider.weight, stream);
  if (write == Write::kAccumulate) Widen(dx, b, k, wider.k, wider.x, stream);
  op::Gemm(Transpose::kNo, Transpose::kYes, b, wider.k, n, dy, wider.weight, write, wider.x,
           stream);
  op::CopyColumns(wider.x, wider.k, Write::kOverwrite, dx, k, b, k, stream);
}

// x_mask: null unless x is the output of a ReLU and dx the gradient of the ReLU's input.
void InputGradient(ConstValues x, const ReluMask* x_mask, ConstValues weight, ConstValues dy,
                   Write write, Values dx, size_t b, size_t k, size_t n, float* scratch,
                   Stream& stream) {
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
  PlainInputGradient(weight, dy, write, dx, b, k, n, scratch, stream);
  if (x_mask == nullptr) return;
  op::ReluBackward(x, dx, Write::kOverwrite, dx, b * k, stream);
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
  const BlasProduct product = ForwardProduct(x, weight, bias, y, b, k, n, scratch, stream);
  if (Made("FullyConnected", product, stream)) return;
  op::Gemm(Transpose::kNo, Transpose::kNo, b, n, k, x, weight, Write::kOverwrite, y, stream);
  if (bias.data == nullptr) return;
  ForType(x.type, [&]<typename T>() { AddBias(As<T>(bias), As<T>(y), b, n, stream); });
}

void FullyConnectedRelu(ConstValues x, ConstValues weight, ConstValues bias, Values y,
                        ReluMask* mask, size_t b, size_t k, size_t n, float* scratch,
                        Stream& stream) {
  mask->is_made = false;
  if (n > 1 && bias.data != nullptr) {
    BlasProduct product = ForwardProduct(x, weight, bias, y, b, k, n, scratch, stream);
    product.epilogue = BlasEpilogue::kBiasRelu;
    product.mask = mask->bits;
    product.mask_stride = ReluMaskStride(n);
    const bool wanted = mask->bits != nullptr;
    if (Made("FullyConnectedRelu", product, stream)) {
      mask->is_made = wanted;
      return;
    }
    product.mask = nullptr;
    if (wanted && Made("FullyConnectedRelu", product, stream)) return;
  }
  op::FullyConnected(x, weight, bias, y, b, k, n, scratch, stream);
  op::Relu(y, y, b * n, stream);
}

void FullyConnectedBackward(ConstValues x, ConstValues weight, ConstValues dy, Write dx_write,
                            Values dx, float* dweight, size_t b, size_t k, size_t n, float* scratch,
                            Stream& stream) {
  WeightGradient(x, dy, dweight, b, k, n, scratch, stream);
  if (dx == nullptr) return;
  InputGradient(x, nullptr, weight, dy, dx_write, dx, b, k, n, scratch, stream);
}

void FullyConnectedBackwardBehindRelu(ConstValues x, const ReluMask& x_mask, ConstValues weight,
                                      ConstValues dy, Values dx, float* dweight, size_t b, size_t k,
                                      size_t n, float* scratch, Stream& stream) {
  WeightGradient(x, dy, dweight, b, k, n, scratch, stream);
  InputGradient(x, &x_mask, weight, dy, Write::kOverwrite, dx, b, k, n, scratch, stream);
}

}  // namespace cistern::op::gpu
