// The subset of CUDA that the kernels of cuda/ use, run on the CPU, so that every kernel runs on
// machines without a GPU and under a sanitizer. It replaces the toolkit's header of this name; the
// host compiler reads the .cu files as C++.
//
// A thread of a block is a fiber. It runs until it waits for others (at a barrier or a shuffle) or
// returns. Blocks run one at a time, every other one with its threads in reverse order, which
// exposes missing barriers. Shared memory is filled with NaN before each block. Streams run as late
// as CUDA allows (runtime.cc), and the host cannot access device memory (device_memory.h), which
// exposes missing waits and copies. Kernels are compiled with a check of the alignment of every
// load and store (CMakeLists.txt). Captured streams become graphs (graphs.h); CUDA's restrictions
// during a capture apply to them and to other threads. An error persists until it is read, and the
// next CUB call returns it. With CISTERN_EMULATED_GPUS=N there are N GPUs, and a thread's current
// GPU must be that of the stream or event that it uses. With CISTERN_EMULATED_FAULT=N the N-th
// kernel accesses an illegal address, after which every call fails. The emulator cannot show races
// between blocks or speed.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <tuple>
#include <utility>

#define __global__
#define __device__
#define __host__
#define __shared__ static
#define __launch_bounds__(...)
#define CISTERN_DYNAMIC_SHARED(type, name) \
  auto* name = static_cast<type*>(cistern::emulator::DynamicShared())

struct dim3 {
  unsigned x, y, z;
  dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};
struct alignas(16) float4 {
  float x, y, z, w;
};
inline float4 make_float4(float x, float y, float z, float w) {
  return {x, y, z, w};
}

namespace cistern::emulator {

// Indices of the running fiber; threadIdx, blockIdx, blockDim and gridDim refer to its members.
struct Place {
  dim3 thread, block, block_dim, grid_dim;
};
extern Place place;
void* DynamicShared();
void WaitForBlock();

// Each lane of the warp passes 8 bytes; returns those of `lane`.
uint64_t Exchange(uint64_t mine, unsigned lane);
unsigned Lane();

// Runs body once per thread of the grid. Stops the process if a GPU would reject the launch, or if
// threads wait for a thread that has returned.
void Run(dim3 grid, dim3 block, size_t shared_bytes, const std::function<void()>& body);

// The limit of dynamic shared memory of a kernel.
size_t AllowedShared(const void* kernel);

}  // namespace cistern::emulator

inline const dim3& threadIdx = cistern::emulator::place.thread;
inline const dim3& blockIdx = cistern::emulator::place.block;
inline const dim3& blockDim = cistern::emulator::place.block_dim;
inline const dim3& gridDim = cistern::emulator::place.grid_dim;

inline void __syncthreads() {
  cistern::emulator::WaitForBlock();
}
inline void __syncwarp() {
  cistern::emulator::Exchange(0, cistern::emulator::Lane());
}
template <typename T>
T __shfl_xor_sync(unsigned, T value, int offset) {
  static_assert(sizeof(T) <= sizeof(uint64_t));
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  bits =
      cistern::emulator::Exchange(bits, cistern::emulator::Lane() ^ static_cast<unsigned>(offset));
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}
inline unsigned atomicAdd(unsigned* at, unsigned value) {
  const unsigned old = *at;
  *at += value;
  return old;
}

// The runtime API, implemented in runtime.cc.

enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInsufficientDriver = 35,
  cudaErrorInvalidResourceHandle = 400,
  cudaErrorNotReady = 600,
  cudaErrorIllegalAddress = 700,
  cudaErrorStreamCaptureUnsupported = 900
};
enum cudaMemcpyKind { cudaMemcpyDefault, cudaMemcpyDeviceToHost };
enum cudaDeviceAttr { cudaDevAttrMultiProcessorCount };
enum cudaStreamCaptureMode { cudaStreamCaptureModeRelaxed };
enum cudaStreamCaptureStatus { cudaStreamCaptureStatusNone, cudaStreamCaptureStatusActive };
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize };
using cudaStream_t = struct EmulatedStream*;
using cudaEvent_t = struct EmulatedEvent*;
using cudaGraph_t = struct EmulatedGraph*;
using cudaGraphExec_t = struct EmulatedGraphExec*;
struct cudaGraphExecUpdateResultInfo {};
inline constexpr unsigned cudaStreamNonBlocking = 1;
#define cudaStreamPerThread (cistern::emulator::StreamOfThread())

struct cudaDeviceProp {
  char name[32];
  size_t totalGlobalMem;
  int major, minor, multiProcessorCount;
};
struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  size_t dynamicSmemBytes = 0;
  cudaStream_t stream = nullptr;
};

const char* cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetLastError();
cudaError_t cudaPeekAtLastError();
cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device);
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device);
cudaError_t cudaRuntimeGetVersion(int* version);
cudaError_t cudaDriverGetVersion(int* version);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaDeviceSynchronize();
cudaError_t cudaMalloc(void** data, size_t bytes);
cudaError_t cudaMemGetInfo(size_t* free, size_t* all);
cudaError_t cudaMallocHost(void** data, size_t bytes);
cudaError_t cudaFree(void* data);
cudaError_t cudaFreeHost(void* data);
cudaError_t cudaMemset(void* data, int value, size_t bytes);
cudaError_t cudaMemsetAsync(void* data, int value, size_t bytes, cudaStream_t stream);
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind);
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags);
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority);
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest);
cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority);
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags);
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph,
                                 unsigned long long flags);
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph,
                                cudaGraphExecUpdateResultInfo* result);
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec);
cudaError_t cudaEventCreate(cudaEvent_t* event);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t from, cudaEvent_t to);
cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value);

namespace cistern::emulator {

cudaStream_t StreamOfThread();

// Stores an error for cudaGetLastError, and returns it.
cudaError_t Keep(cudaError_t error);

// Enqueues `run`, which runs a kernel.
cudaError_t Launch(cudaStream_t stream, std::function<void()> run);

}  // namespace cistern::emulator

template <typename... Parameters, typename... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...),
                               Arguments&&... arguments) {
  if (config->dynamicSmemBytes >
      cistern::emulator::AllowedShared(reinterpret_cast<const void*>(kernel))) {
    return cistern::emulator::Keep(cudaErrorInvalidValue);
  }
  return cistern::emulator::Launch(
      config->stream,
      [grid = config->gridDim, block = config->blockDim, shared_bytes = config->dynamicSmemBytes,
       kernel, held = std::tuple<Parameters...>(std::forward<Arguments>(arguments)...)] {
        cistern::emulator::Run(grid, block, shared_bytes, [&] { std::apply(kernel, held); });
      });
}
