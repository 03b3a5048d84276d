// The runtime's functions of cuda_runtime.h.
#include <cstdio>
#include <cstdlib>
#include <map>

#include "test/cuda/emulator/cuda_runtime.h"

namespace cistern::emulator {
namespace {

constexpr size_t kMemoryBytes = size_t{2} << 30;  // that the device has
constexpr size_t kSharedWithoutAsking = 48 << 10;

std::map<const void*, size_t> allowed_shared;

// Around each piece of memory lie guards of NaN: what reads one shows in the sums, and what writes
// one stops the process when the memory is given back.
constexpr size_t kGuardBytes = 256;
constexpr unsigned char kGuard = 0xFF;
std::map<void*, size_t> taken;  // bytes, by address

cudaError_t Take(void** data, size_t bytes) {
  if (bytes > kMemoryBytes) return cudaErrorMemoryAllocation;
  const size_t whole = (bytes + 2 * kGuardBytes + 255) / 256 * 256;
  auto* from = static_cast<unsigned char*>(std::aligned_alloc(256, whole));
  std::memset(from, kGuard, whole);
  *data = from + kGuardBytes;
  taken[*data] = bytes;
  return cudaSuccess;
}

cudaError_t GiveBack(void* data) {
  if (data == nullptr) return cudaSuccess;
  const auto found = taken.find(data);
  if (found == taken.end()) return cudaErrorInvalidValue;
  auto* from = static_cast<unsigned char*>(data) - kGuardBytes;
  const unsigned char* behind = static_cast<unsigned char*>(data) + found->second;
  for (size_t i = 0; i < kGuardBytes; ++i) {
    if (from[i] == kGuard && behind[i] == kGuard) continue;
    std::fprintf(stderr, "the emulated GPU stops: something was written beside %zu bytes\n",
                 found->second);
    std::abort();
  }
  taken.erase(found);
  std::free(from);
  return cudaSuccess;
}

}  // namespace

size_t AllowedShared(const void* kernel) {
  const auto found = allowed_shared.find(kernel);
  return found == allowed_shared.end() ? kSharedWithoutAsking : found->second;
}

}  // namespace cistern::emulator

const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaSuccess ? "no error" : "the emulated GPU refuses";
}
cudaError_t cudaGetLastError() {
  return cudaSuccess;
}
cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {"emulated GPU", cistern::emulator::kMemoryBytes, 8, 0, 4};
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int) {
  *value = 4;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = 12000;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = 12000;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  return device == 0 ? cudaSuccess : cudaErrorInvalidValue;
}
cudaError_t cudaDeviceSynchronize() {
  return cudaSuccess;
}
cudaError_t cudaMalloc(void** data, size_t bytes) {
  return cistern::emulator::Take(data, bytes);
}
cudaError_t cudaMallocHost(void** data, size_t bytes) {
  return cistern::emulator::Take(data, bytes);
}
cudaError_t cudaFree(void* data) {
  return cistern::emulator::GiveBack(data);
}
cudaError_t cudaFreeHost(void* data) {
  return cistern::emulator::GiveBack(data);
}
cudaError_t cudaMemset(void* data, int value, size_t bytes) {
  std::memset(data, value, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* data, int value, size_t bytes, cudaStream_t) {
  return cudaMemset(data, value, bytes);
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind) {
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t) {
  return cudaMemcpy(to, from, bytes, kind);
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = new int(0);
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t) {
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) {
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* event) {
  *event = new double(0);
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) {
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t) {
  return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t, cudaEvent_t) {
  *ms = 0;
  return cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute, int value) {
  constexpr int kSharedAtMost = 163 << 10;  // of sm_80, the least of the GPUs that are built for
  if (value > kSharedAtMost) return cudaErrorInvalidValue;
  cistern::emulator::allowed_shared[kernel] = static_cast<size_t>(value);
  return cudaSuccess;
}
