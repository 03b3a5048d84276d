// How the CPU builds of the ops divide their work among OpenMP threads. Internal to x_cpu.cc.
//
// The pieces depend only on the shape, and piece i writes only its own elements, so neither the
// number of threads nor their speed changes any bit.
#pragma once

#ifdef _OPENMP
#include <omp.h>
#endif

#include <algorithm>
#include <cstddef>

#include "absl/status/status.h"
#include "common/base/thread_limit.h"
#include "cuda/op/primitive/op.h"

namespace cistern::op {

// True on the CPU. On another device the stream gets kUnimplemented and the op must return: for ops
// without a GPU build.
inline bool OnCpu(Stream& stream) {
  if (stream.device() == DeviceKind::kCpu) return true;
  stream.Record(absl::UnimplementedError("this build has no version of the op for that device"));
  return false;
}

#ifdef CISTERN_HAS_CUDA
inline constexpr bool kHasGpuBuilds = true;
#else
inline constexpr bool kHasGpuBuilds = false;
#endif

// The first statement of a public op: on a GPU stream it calls the GPU build, gpu::name in x.cu,
// with the same arguments, and returns. x_cpu.cc declares gpu::name with decltype(op::name), so the
// two signatures cannot diverge. Without a CUDA toolkit nothing refers to gpu::name.
#define CISTERN_RUN_ON_GPU(name, ...)                                       \
  do {                                                                      \
    if (stream.device() == DeviceKind::kCpu) break;                         \
    if constexpr (kHasGpuBuilds) {                                          \
      if (stream.queue() != nullptr) return gpu::name(__VA_ARGS__, stream); \
    }                                                                       \
    return (void)OnCpu(stream);                                             \
  } while (false)

#ifdef _OPENMP
inline int ThreadNum() {
  return LoopThreads();
}
// For parallel regions: OpenMP libraries called by this thread start no threads of their own.
inline void KeepLibrariesSingleThreaded() {
  omp_set_num_threads(1);
}
#else
inline int ThreadNum() {
  return 1;
}
inline void KeepLibrariesSingleThreaded() {}
#endif

inline size_t CeilDiv(size_t a, size_t b) {
  return (a + b - 1) / b;
}

// The number of elements from which a second thread pays off, for elements that cost about one load
// and one store.
inline constexpr size_t kParallelFloats = 16384;

// Calls body(begin, end) on the pieces of [0, count), each of `grain`; `cost` is the approximate
// number of floats that all pieces touch. A thread that other programs slow down takes fewer
// pieces.
template <typename Body>
void ForPieces(size_t count, size_t grain, size_t cost, const Body& body) {
  const size_t pieces = CeilDiv(count, grain);
#pragma omp parallel for schedule(guided) \
    num_threads(ThreadNum()) if (pieces > 1 && cost >= kParallelFloats)
  for (size_t i = 0; i < pieces; ++i) {
    body(i * grain, std::min(count, (i + 1) * grain));
  }
}

// Rows per partial sum. Partial sums are then added in order.
inline constexpr size_t kRowsPerBlock = 64;
inline size_t RowBlocks(size_t b) {
  return CeilDiv(b, kRowsPerBlock);
}

// Elements per piece of a flat array.
inline constexpr size_t kElementGrain = 4096;

// Rows per piece of a [b, n] matrix: about kElementGrain floats.
inline size_t RowGrain(size_t n) {
  return std::max<size_t>(1, kElementGrain / std::max<size_t>(1, n));
}

// The number of columns whose running sums in double fit a stack array.
inline constexpr size_t kColumnChunk = 128;

// out(c) = sum over the `blocks` rows of partial [blocks, n], in double, in order.
inline void AddPartials(const float* partial, size_t blocks, size_t n, float* out) {
  ForPieces(n, kColumnChunk, blocks * n, [&](size_t begin, size_t end) {
    double sum[kColumnChunk] = {};
    const size_t width = end - begin;
    for (size_t k = 0; k < blocks; ++k) {
      const float* row = partial + k * n + begin;
      for (size_t c = 0; c < width; ++c) sum[c] += row[c];
    }
    for (size_t c = 0; c < width; ++c) out[begin + c] = static_cast<float>(sum[c]);
  });
}

}  // namespace cistern::op
