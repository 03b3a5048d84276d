#include "cuda/op/dense/fully_connected.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

#include "cuda/op/dense/dropout_element.h"
#include "cuda/op/dense/gemm_cpu.h"
#include "cuda/op/dense/ordered_product_cpu.h"
#include "cuda/op/dense/packed_weights.h"
#include "cuda/op/dense/relu.h"
#include "cuda/op/primitive/cpu.h"
#include "cuda/op/primitive/vector_cpu.h"
#include "cuda/op/primitive/wide_array.h"

namespace cistern::op {

namespace gpu {  // fully_connected.cu
decltype(op::FullyConnected) FullyConnected;
decltype(op::FullyConnectedRelu) FullyConnectedRelu;
decltype(op::FullyConnectedBackward) FullyConnectedBackward;
decltype(op::FullyConnectedWide) FullyConnectedWide;
decltype(op::FullyConnectedWideBackward) FullyConnectedWideBackward;
decltype(op::DotBackwardBehindRelu) DotBackwardBehindRelu;
}  // namespace gpu

namespace {

// The last layer of a model has one output, where matrix libraries are slow and the product is
// memory-bound.

template <typename T>
void DotRows(const T* x, const T* weight, float bias, T* y, size_t b, size_t k) {
  ForPieces(b, RowGrain(k), b * k, [=](size_t begin, size_t end) {
    for (size_t r = begin; r < end; ++r) y[r] = Dot(x + r * k, weight, k) + bias;
  });
}

template <typename T>
void OuterProduct(const T* dy, const T* weight, Write write, T* dx, size_t b, size_t k) {
  ForPieces(b, RowGrain(k), 2 * b * k, [=](size_t begin, size_t end) {
    for (size_t r = begin; r < end; ++r) {
      const float factor = dy[r];
      T* row = dx + r * k;
      if (write == Write::kOverwrite) {
#pragma omp simd
        for (size_t c = 0; c < k; ++c) row[c] = factor * weight[c];
      } else {
#pragma omp simd
        for (size_t c = 0; c < k; ++c) row[c] += factor * weight[c];
      }
    }
  });
}

// out(c) = sum over the rows of factor(r) * x(r, c). scratch: [RowBlocks(b), n].
template <typename T>
void WeightedColumnSums(const T* x, const T* factor, size_t b, size_t n, float* scratch,
                        float* out) {
  ForPieces(b, kRowsPerBlock, b * n, [=](size_t begin, size_t end) {
    float* sum = scratch + begin / kRowsPerBlock * n;
    std::fill_n(sum, n, 0.0f);
    for (size_t r = begin; r < end; ++r) {
      const T* row = x + r * n;
      const float weight = factor[r];
#pragma omp simd
      for (size_t c = 0; c < n; ++c) sum[c] += weight * row[c];
    }
  });
  AddPartials(scratch, RowBlocks(b), n, out);
}

// row += bias (null: nothing), then its ReLU.
void AddBias(const float* bias, bool relu, float* row, size_t n) {
  if (bias != nullptr) {
#pragma omp simd
    for (size_t c = 0; c < n; ++c) row[c] += bias[c];
  }
  if (!relu) return;
#pragma omp simd
  for (size_t c = 0; c < n; ++c) row[c] = row[c] < 0.0f ? 0.0f : row[c];
}

// y = x W + bias, or its ReLU: n > 1.
void Forward(ConstValues x, ConstValues weight, ConstValues bias, bool relu, Values y, size_t b,
             size_t k, size_t n) {
  const WideArray in(x, b * k), weights(weight, k * n), shift(bias, bias == nullptr ? 0 : n);
  WideResult out(y, b * n, Write::kOverwrite);
  const MatrixProduct product = {false, false,        b, n, k, in.floats(), k, weights.floats(), n,
                                 false, out.floats(), n};
  MultiplyInBlocks(product, [&](const MatrixProduct& done, size_t first_column) {
    const float* add = bias == nullptr ? nullptr : shift.floats() + first_column;
    for (size_t r = 0; r < done.m; ++r) AddBias(add, relu, done.c + r * done.ldc, done.n);
  });
  out.Round();
}

// FullyConnectedInfer in floats. packed: as OrderedProduct.
void InferRows(const float* x, const float* weight, const float* packed, const float* bias,
               bool relu, float* y, size_t b, size_t k, size_t n) {
  OrderedProduct(x, weight, packed, b, k, n, y);
  ForPieces(b, RowGrain(n), b * n, [=](size_t begin, size_t end) {
    for (size_t r = begin; r < end; ++r) AddBias(bias, relu, y + r * n, n);
  });
}

// A weight with rows of zeros up to WideColumns.
class WideWeight {
 public:
  WideWeight(ConstValues weight, size_t k, size_t n)
      : type_(weight.type),
        rows_(WideColumns(type_, k)),
        bytes_(rows_ * n * BytesOf(type_), std::byte{0}) {
    if (k * n > 0) std::memcpy(bytes_.data(), weight.data, k * n * BytesOf(type_));
  }
  ConstValues values() const { return {bytes_.data(), type_}; }
  size_t rows() const { return rows_; }

 private:
  const ElementType type_;
  const size_t rows_;
  std::vector<std::byte> bytes_;
};

}  // namespace

void FullyConnected(ConstValues x, ConstValues weight, ConstValues bias, Values y, size_t b,
                    size_t k, size_t n, float* scratch, Stream& stream) {
  CISTERN_RUN_ON_GPU(FullyConnected, x, weight, bias, y, b, k, n, scratch);
  if (n != 1) return Forward(x, weight, bias, /*relu=*/false, y, b, k, n);
  ForType(x.type, [&]<typename T>() {
    const float shift = bias == nullptr ? 0.0f : float{As<T>(bias)[0]};
    DotRows(As<T>(x), As<T>(weight), shift, As<T>(y), b, k);
  });
}

void FullyConnectedRelu(ConstValues x, ConstValues weight, ConstValues bias, Values y, size_t b,
                        size_t k, size_t n, float* scratch, Stream& stream) {
  CISTERN_RUN_ON_GPU(FullyConnectedRelu, x, weight, bias, y, b, k, n, scratch);
  if (n != 1) return Forward(x, weight, bias, /*relu=*/true, y, b, k, n);
  FullyConnected(x, weight, bias, y, b, k, n, scratch, stream);
  Relu(y, y, b * n, stream);
}

void FullyConnectedInfer(ConstValues x, ConstValues weight, ConstValues bias, bool relu, Values y,
                         size_t b, size_t k, size_t n, float* scratch, Stream& stream) {
  if (stream.device() != DeviceKind::kCpu || n == 1) {
    return relu ? FullyConnectedRelu(x, weight, bias, y, b, k, n, scratch, stream)
                : FullyConnected(x, weight, bias, y, b, k, n, scratch, stream);
  }
  const WideArray in(x, b * k), weights(weight, k * n), shift(bias, bias == nullptr ? 0 : n);
  WideResult out(y, b * n, Write::kOverwrite);
  InferRows(in.floats(), weights.floats(), nullptr, bias == nullptr ? nullptr : shift.floats(),
            relu, out.floats(), b, k, n);
  out.Round();
}

void FullyConnectedInferPacked(const float* x, const float* weight, const PackedWeights& packed,
                               const float* bias, bool relu, float* y, size_t b, size_t k,
                               size_t n) {
  InferRows(x, weight, packed.panels(), bias, relu, y, b, k, n);
}

void FullyConnectedBackward(ConstValues x, ConstValues weight, ConstValues dy, Write dx_write,
                            Values dx, float* dweight, size_t b, size_t k, size_t n, float* scratch,
                            Stream& stream) {
  CISTERN_RUN_ON_GPU(FullyConnectedBackward, x, weight, dy, dx_write, dx, dweight, b, k, n,
                     scratch);
  if (n == 1) {
    return ForType(x.type, [&]<typename T>() {
      WeightedColumnSums(As<T>(x), As<T>(dy), b, k, scratch, dweight);
      if (dx == nullptr) return;
      OuterProduct(As<T>(dy), As<T>(weight), dx_write, As<T>(dx), b, k);
    });
  }
  Gemm(Transpose::kYes, Transpose::kNo, k, n, b, x, dy, Write::kOverwrite, dweight, stream);
  if (dx == nullptr) return;
  Gemm(Transpose::kNo, Transpose::kYes, b, k, n, dy, weight, dx_write, dx, stream);
}

void FullyConnectedWide(ConstValues x, ConstValues weight, ConstValues bias, bool relu, Values y,
                        size_t b, size_t k, size_t n, float* scratch, Stream& stream) {
  CISTERN_RUN_ON_GPU(FullyConnectedWide, x, weight, bias, relu, y, b, k, n, scratch);
  const WideWeight wide(weight, k, n);
  const auto compute = relu ? FullyConnectedRelu : FullyConnected;
  compute(x, wide.values(), bias, y, b, wide.rows(), n, scratch, stream);
}

void FullyConnectedWideBackward(ConstValues x, ConstValues weight, ConstValues dy, Write dx_write,
                                Values dx, float* dweight, size_t b, size_t k, size_t n,
                                float* scratch, Stream& stream) {
  CISTERN_RUN_ON_GPU(FullyConnectedWideBackward, x, weight, dy, dx_write, dx, dweight, b, k, n,
                     scratch);
  const WideWeight wide(weight, k, n);
  std::vector<float> wide_dweight(wide.rows() * n);
  FullyConnectedBackward(x, wide.values(), dy, dx_write, dx, wide_dweight.data(), b, wide.rows(), n,
                         scratch, stream);
  std::copy_n(wide_dweight.data(), k * n, dweight);
}

void DotBackwardBehindRelu(ConstValues x, ConstValues weight, ConstValues dy, Values dx,
                           float* dweight, size_t b, size_t k, float* scratch, Stream& stream) {
  CISTERN_RUN_ON_GPU(DotBackwardBehindRelu, x, weight, dy, dx, dweight, b, k, scratch);
  ForType(x.type, [&]<typename T>() {
    WeightedColumnSums(As<T>(x), As<T>(dy), b, k, scratch, dweight);
    const T *in = As<T>(x), *factors = As<T>(dy), *row = As<T>(weight);
    T* out = As<T>(dx);
    ForPieces(b, RowGrain(k), 2 * b * k, [=](size_t begin, size_t end) {
      for (size_t r = begin; r < end; ++r) {
        const float factor = factors[r];
#pragma omp simd
        for (size_t c = 0; c < k; ++c) {
          out[r * k + c] = BehindRelu(in[r * k + c], factor * row[c], 1.0f);
        }
      }
    });
  });
}

// With one output: partial sums. Otherwise a GPU's padded copies: dW 32-bit, the others 16-bit.
size_t FullyConnectedScratchFloats(ElementType type, size_t b, size_t k, size_t n) {
  if (n == 1) return RowBlocks(b) * k;
  if (type == ElementType::kFloat) return 0;
  const size_t wide_k = WideColumns(type, k), wide_n = WideColumns(type, n);
  const size_t x = wide_k == k ? 0 : b * wide_k, y = wide_n == n ? 0 : b * wide_n;
  return (x + y + wide_n + wide_k * wide_n) / 2 + wide_k * wide_n;
}

}  // namespace cistern::op
