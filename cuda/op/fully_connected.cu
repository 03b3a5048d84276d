// Forward: 2 b k n FLOPs, bytes that must move s (b k + k n + n + b n) for elements of s bytes;
// bias and ReLU are cuBLASLt's epilogue, and its mask b n / 8 bytes. Backward: 4 b k n FLOPs in two
// products, with the column sums of dy in the epilogue of one and the ReLU in front in that of the
// other; where the library has no such kernel, kernels of their own read dy again, s b n bytes, and
// read x and move dx, 3 s b k. With n = 1 it is bound by memory and has kernels of its own: s b k
// bytes each pass, and as much to read x for the ReLU in front.
#include "cuda/op/fully_connected.h"

#include "cuda/op/dropout_element.h"
#include "cuda/op/elementwise.h"
#include "cuda/op/gemm.h"
#include "cuda/op/reduce.cuh"
#include "cuda/op/relu.h"

namespace cistern::op::gpu {
namespace {

// y(r) = x(r) . weight + bias; a group of blockDim.x threads to a row.
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

// out(c) = the sum over the rows of factor(r) * x(r, c); factor null: 1.
template <typename T>
void WeightedColumnSums(const char* op, const T* x, const T* factor, size_t b, size_t n,
                        float* scratch, float* out, Stream& stream) {
  ColumnSums<1>(op, b, n, scratch, stream, [=] __device__(size_t r, size_t c, float* sum) {
    sum[0] += factor == nullptr ? float{x[r * n + c]} : factor[r] * x[r * n + c];
  });
  AddBlocks(op, scratch, 1, CeilDivide(b, kRowsOfBlock), n, out, nullptr, stream);
}

template <typename T>
void AddBias(const T* bias, T* y, size_t b, size_t n, Stream& stream) {
  MapRows("FullyConnected: bias", b, n, Write::kAccumulate, y, n, stream,
          [=] __device__(size_t, size_t c) { return float{bias[c]}; });
}

// Of the rows with the gradients of one output; behind_relu: x > 0 ? dx : 0.
template <typename T>
void OuterProduct(const T* x, const T* dy, const T* weight, bool behind_relu, Write write, T* dx,
                  size_t b, size_t k, Stream& stream) {
  MapRows("FullyConnectedBackward: dx", b, k, write, dx, k, stream,
          [=] __device__(size_t r, size_t c) {
            const float made = dy[r] * weight[c];
            return behind_relu ? BehindRelu(x[r * k + c], made, 1.0f) : made;
          });
}

// Whether the library has made the product, or nothing is to be made any more. False: it has no
// kernel for this one.
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

BlasProduct ForwardProduct(ConstValues x, ConstValues weight, ConstValues bias, Values y, size_t b,
                           size_t k, size_t n, Stream& stream) {
  BlasProduct product = {false, false, b, n, k, x, weight, false, y, stream.product_precision()};
  product.epilogue = BlasEpilogue::kBias;
  product.bias = bias;
  return product;
}

// dweight, and dbias unless it is null.
void WeightGradients(ConstValues x, ConstValues dy, float* dweight, float* dbias, size_t b,
                     size_t k, size_t n, float* scratch, Stream& stream) {
  BlasProduct product = {true, false, k, n, b, x, dy, false, dweight, stream.product_precision()};
  product.epilogue = BlasEpilogue::kColumnSums;
  product.column_sums = dbias;
  if (n > 1 && dbias != nullptr && Made("FullyConnectedBackward", product, stream)) return;
  ForType(x.type, [&]<typename T>() {
    const T* none = nullptr;
    if (dbias != nullptr) {
      WeightedColumnSums("FullyConnectedBackward: dbias", As<T>(dy), none, b, n, scratch, dbias,
                         stream);
    }
    if (n != 1) return;
    WeightedColumnSums("FullyConnectedBackward: dweight", As<T>(x), As<T>(dy), b, k, scratch,
                       dweight, stream);
  });
  if (n == 1) return;
  op::Gemm(Transpose::kYes, Transpose::kNo, k, n, b, x, dy, Write::kOverwrite, dweight, stream);
}

// x_mask: null unless x is the output of a ReLU and dx the gradient of what that was given.
void InputGradient(ConstValues x, const ReluMask* x_mask, ConstValues weight, ConstValues dy,
                   Write write, Values dx, size_t b, size_t k, size_t n, Stream& stream) {
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
  op::Gemm(Transpose::kNo, Transpose::kYes, b, k, n, dy, weight, write, dx, stream);
  if (x_mask == nullptr) return;
  op::ReluBackward(x, dx, Write::kOverwrite, dx, b * k, stream);
}

}  // namespace

void FullyConnected(ConstValues x, ConstValues weight, ConstValues bias, Values y, size_t b,
                    size_t k, size_t n, Stream& stream) {
  if (n == 1) {
    const dim3 block = RowBlock(k, kWarp);
    return ForType(x.type, [&]<typename T>() {
      Launch("FullyConnected", DotRowsKernel<T>,
             dim3(static_cast<unsigned>(CeilDivide(b, block.y))), block, 0, stream, As<T>(x),
             As<T>(weight), As<T>(bias), As<T>(y), b, k);
    });
  }
  const bool has_bias = bias.data != nullptr;
  if (has_bias &&
      Made("FullyConnected", ForwardProduct(x, weight, bias, y, b, k, n, stream), stream)) {
    return;
  }
  op::Gemm(Transpose::kNo, Transpose::kNo, b, n, k, x, weight, Write::kOverwrite, y, stream);
  if (!has_bias) return;
  ForType(x.type, [&]<typename T>() { AddBias(As<T>(bias), As<T>(y), b, n, stream); });
}

void FullyConnectedRelu(ConstValues x, ConstValues weight, ConstValues bias, Values y,
                        ReluMask* mask, size_t b, size_t k, size_t n, Stream& stream) {
  mask->is_made = false;
  BlasProduct product = ForwardProduct(x, weight, bias, y, b, k, n, stream);
  product.epilogue = BlasEpilogue::kBiasRelu;
  const bool has_epilogue = n > 1 && bias.data != nullptr;
  if (has_epilogue && mask->bits != nullptr) {
    product.mask = mask->bits;
    product.mask_stride = ReluMaskStride(n);
    mask->is_made = Made("FullyConnectedRelu", product, stream);
    if (mask->is_made) return;
    product.mask = nullptr;
  }
  if (has_epilogue && Made("FullyConnectedRelu", product, stream)) return;
  op::FullyConnected(x, weight, bias, y, b, k, n, stream);
  op::Relu(y, y, b * n, stream);
}

void FullyConnectedBackward(ConstValues x, ConstValues weight, ConstValues dy, Write dx_write,
                            Values dx, float* dweight, float* dbias, size_t b, size_t k, size_t n,
                            float* scratch, Stream& stream) {
  WeightGradients(x, dy, dweight, dbias, b, k, n, scratch, stream);
  if (dx == nullptr) return;
  InputGradient(x, nullptr, weight, dy, dx_write, dx, b, k, n, stream);
}

void FullyConnectedBackwardBehindRelu(ConstValues x, const ReluMask& x_mask, ConstValues weight,
                                      ConstValues dy, Values dx, float* dweight, float* dbias,
                                      size_t b, size_t k, size_t n, float* scratch,
                                      Stream& stream) {
  WeightGradients(x, dy, dweight, dbias, b, k, n, scratch, stream);
  InputGradient(x, &x_mask, weight, dy, Write::kOverwrite, dx, b, k, n, stream);
}

}  // namespace cistern::op::gpu
