// Memory traffic for b samples of n elements of s bytes: forward 2 s b n; backward 3 s b n (4 s
// where dx accumulates) if the second read of x and dy hits the cache, and twice 4 (layers + 1) n
// per 64 samples. FLOPs: forward 2 b n (layers + 1), backward 2 b n (3 layers + 3).
#include "cuda/op/dense/multi_cross.h"

#include "cuda/op/primitive/reduce.cuh"

namespace cistern::op::gpu {
namespace {

// The parameters, and the terms of the formula that all samples share.
struct CrossNet {
  const float* parameters;
  float* bias_sums;  // [layers + 1, n]: B(l)
  float* bias_dots;  // [layers]: B(l) . w(l)
  size_t layers, n;
  __device__ const float* w(size_t l) const { return parameters + 2 * l * n; }
  __device__ const float* bias(size_t l) const { return parameters + (2 * l + 1) * n; }
};

constexpr unsigned kWarps = kBlockThreads / kWarp;

// One block, because there are few parameters.
__global__ void __launch_bounds__(kBlockThreads) SharedTermsKernel(CrossNet net) {
  for (size_t c = threadIdx.x; c < net.n; c += kBlockThreads) net.bias_sums[c] = 0.0f;
  for (size_t l = 0; l < net.layers; ++l) {
    const float* from = net.bias_sums + l * net.n;  // a thread reads only its own writes
    float dot = 0.0f;
    for (size_t c = threadIdx.x; c < net.n; c += kBlockThreads) {
      dot += from[c] * net.w(l)[c];
      net.bias_sums[(l + 1) * net.n + c] = from[c] + net.bias(l)[c];
    }
    dot = BlockSum(dot);
    if (threadIdx.x == 0) net.bias_dots[l] = dot;
  }
}

template <typename A, typename B>
__device__ inline float WarpDot(const A* a, const B* b, size_t n) {
  float dot = 0.0f;
#pragma unroll 8
  for (size_t c = threadIdx.x % kWarp; c < n; c += kWarp) dot += a[c] * b[c];
  return WarpSum(dot);
}

// One warp per sample.
template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    CrossForwardKernel(CrossNet net, const T* __restrict__ x, T* __restrict__ y, size_t b) {
  const size_t r = size_t{blockIdx.x} * kWarps + threadIdx.x / kWarp;
  if (r >= b) return;
  const T* in = x + r * net.n;
  float coefficient = 1.0f;
  for (size_t l = 0; l < net.layers; ++l) {
    coefficient += coefficient * WarpDot(in, net.w(l), net.n) + net.bias_dots[l];
  }
  const float* shift = net.bias_sums + net.layers * net.n;
#pragma unroll 4
  for (size_t c = threadIdx.x % kWarp; c < net.n; c += kWarp) {
    y[r * net.n + c] = shift[c] + coefficient * in[c];
  }
}

// The terms of a block's samples, in shared memory.
struct SampleTerms {
  float* t;     // [kRowsOfBlock, layers]: p(l), then t(l)
  float* tc;    // [kRowsOfBlock, layers]: c(l), then t(l) c(l)
  float* last;  // [kRowsOfBlock]: c(layers)
};

// Computes the terms of one sample with one warp.
template <typename T>
__device__ inline void FindTerms(const CrossNet& net, const T* x, const T* dy, float* t, float* tc,
                                 float* last) {
  const bool leads = threadIdx.x % kWarp == 0;
  float coefficient = 1.0f;
  for (size_t l = 0; l < net.layers; ++l) {
    const float p = WarpDot(x, net.w(l), net.n);
    if (leads) {
      t[l] = p;
      tc[l] = coefficient;
    }
    coefficient += coefficient * p + net.bias_dots[l];
  }
  float slope = WarpDot(x, dy, net.n);  // t(l) = x . dy + the sum over k > l of t(k) p(k)
  if (!leads) return;
  *last = coefficient;
  for (size_t l = net.layers; l-- > 0;) {
    const float p = t[l];
    t[l] = slope;
    tc[l] *= slope;
    slope += slope * p;
  }
}

constexpr unsigned kLayersTogether = 4;

// Column c of the sums over the block's rows of t(l) c(l) x, then of dy.
template <typename T>
__device__ inline void SumColumn(const CrossNet& net, const T* x, const T* dy,
                                 const SampleTerms& terms, size_t rows, size_t c, float* sums) {
  for (size_t first = 0; first < net.layers; first += kLayersTogether) {
    float sum[kLayersTogether] = {};
    for (size_t r = 0; r < rows; ++r) {
      const float value = x[r * net.n + c];
#pragma unroll
      for (unsigned k = 0; k < kLayersTogether; ++k) {
        if (first + k < net.layers) sum[k] += terms.tc[r * net.layers + first + k] * value;
      }
    }
#pragma unroll
    for (unsigned k = 0; k < kLayersTogether; ++k) {
      if (first + k < net.layers) sums[(first + k) * net.n + c] = sum[k];
    }
  }
  float sum = 0.0f;
#pragma unroll 8
  for (size_t r = 0; r < rows; ++r) sum += dy[r * net.n + c];
  sums[net.layers * net.n + c] = sum;
}

// One block per kRowsOfBlock samples. Computes their terms, one warp per sample; then, one thread
// per column, dx and the sums for the parameters' gradients. sums: [blocks, layers n + n + layers].
template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    CrossBackwardKernel(CrossNet net, const T* __restrict__ x, const T* __restrict__ dy,
                        bool accumulate, T* __restrict__ dx, float* sums, size_t b) {
  CISTERN_DYNAMIC_SHARED(float, shared);
  const size_t layers = net.layers, n = net.n;
  const SampleTerms terms = {shared, shared + kRowsOfBlock * layers,
                             shared + 2 * kRowsOfBlock * layers};
  const size_t first = size_t{blockIdx.x} * kRowsOfBlock;
  const size_t rows = b - first < kRowsOfBlock ? b - first : kRowsOfBlock;
  const T* in = x + first * n;
  const T* grad = dy + first * n;
  for (size_t r = threadIdx.x / kWarp; r < rows; r += kWarps) {
    FindTerms(net, in + r * n, grad + r * n, terms.t + r * layers, terms.tc + r * layers,
              terms.last + r);
  }
  __syncthreads();
  float* out = sums + blockIdx.x * (layers * n + n + layers);
  for (size_t c = threadIdx.x; c < n; c += kBlockThreads) {
    SumColumn(net, in, grad, terms, rows, c, out);
    if (dx == nullptr) continue;
#pragma unroll 4
    for (size_t r = 0; r < rows; ++r) {
      float value = terms.last[r] * grad[r * n + c];
      for (size_t l = 0; l < layers; ++l) value += terms.tc[r * layers + l] * net.w(l)[c];
      T* at = dx + (first + r) * n + c;
      *at = accumulate ? *at + value : value;
    }
  }
  for (size_t l = threadIdx.x; l < layers; l += kBlockThreads) {
    float sum = 0.0f;
    for (size_t r = 0; r < rows; ++r) sum += terms.t[r * layers + l];
    out[layers * n + n + l] = sum;
  }
}

// Gradients of the parameters from the sums over all samples; one thread per column.
__global__ void __launch_bounds__(kBlockThreads)
    ParameterGradientsKernel(CrossNet net, const float* sums, float* dparameters) {
  const size_t c = size_t{blockIdx.x} * kBlockThreads + threadIdx.x, n = net.n;
  if (c >= n) return;
  const float* t = sums + net.layers * n + n;
  float dbias = sums[net.layers * n + c];
  for (size_t l = net.layers; l-- > 0;) {
    dparameters[2 * l * n + c] = sums[l * n + c] + t[l] * net.bias_sums[l * n + c];
    dparameters[(2 * l + 1) * n + c] = dbias;
    dbias += t[l] * net.w(l)[c];
  }
}

size_t SumFloats(size_t layers, size_t n) {
  return layers * n + n + layers;
}

// Enqueues the computation of the shared terms into the beginning of `scratch`; *rest = the scratch
// after them.
CrossNet MakeCrossNet(const float* parameters, size_t layers, size_t n, float* scratch,
                      float** rest, Stream& stream) {
  const CrossNet net = {parameters, scratch, scratch + (layers + 1) * n, layers, n};
  *rest = net.bias_dots + layers;
  Launch("MultiCross: shared terms", SharedTermsKernel, dim3(1), dim3(kBlockThreads), 0, stream,
         net);
  return net;
}

// The number of layers whose terms for kRowsOfBlock samples fit the shared memory of every GPU
// since sm_80: 99 KiB.
constexpr size_t kMaxLayers = 190;

}  // namespace

void MultiCross(ConstValues x, const float* parameters, Values y, size_t b, size_t layers, size_t n,
                float* scratch, Stream& stream) {
  float* rest = nullptr;
  const CrossNet net = MakeCrossNet(parameters, layers, n, scratch, &rest, stream);
  ForType(x.type, [&]<typename T>() {
    Launch("MultiCross", CrossForwardKernel<T>, dim3(static_cast<unsigned>(CeilDivide(b, kWarps))),
           dim3(kBlockThreads), 0, stream, net, As<T>(x), As<T>(y), b);
  });
}

void MultiCrossBackward(ConstValues x, const float* parameters, ConstValues dy, Write dx_write,
                        Values dx, float* dparameters, size_t b, size_t layers, size_t n,
                        float* scratch, Stream& stream) {
  if (layers > kMaxLayers) {
    return stream.Record(absl::UnimplementedError(
        absl::StrCat("MultiCross of ", layers, " layers: on a GPU the maximum is ", kMaxLayers)));
  }
  float* total = nullptr;
  const CrossNet net = MakeCrossNet(parameters, layers, n, scratch, &total, stream);
  float* sums = total + SumFloats(layers, n);
  const size_t blocks = CeilDivide(b, kRowsOfBlock);
  const size_t shared_bytes = kRowsOfBlock * (2 * layers + 1) * sizeof(float);
  ForType(x.type, [&]<typename T>() {
    Launch("MultiCrossBackward", CrossBackwardKernel<T>, dim3(static_cast<unsigned>(blocks)),
           dim3(kBlockThreads), shared_bytes, stream, net, As<T>(x), As<T>(dy),
           dx_write == Write::kAccumulate, As<T>(dx), sums, b);
  });
  AddBlocks("MultiCrossBackward: sums", sums, 1, blocks, SumFloats(layers, n), total, nullptr,
            stream);
  Launch("MultiCrossBackward: parameters", ParameterGradientsKernel,
         dim3(static_cast<unsigned>(CeilDivide(n, kBlockThreads))), dim3(kBlockThreads), 0, stream,
         net, total, dparameters);
}

}  // namespace cistern::op::gpu
