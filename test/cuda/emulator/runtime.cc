// The runtime's functions of cuda_runtime.h. What is enqueued runs as late as CUDA allows: when
// somebody waits for it. So a wait that is missing shows, in every run.
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "test/cuda/emulator/cuda_runtime.h"
#include "test/cuda/emulator/device_memory.h"

struct EmulatedStream {
  std::deque<std::function<void()>> queue;
  uint64_t enqueued = 0, done = 0;  // entries of the queue, ever
};

struct EmulatedEvent {
  EmulatedStream* stream = nullptr;  // where it was recorded last
  uint64_t after = 0;                // it happens once so many entries of that stream are done
};

namespace cistern::emulator {
namespace {

constexpr size_t kSharedWithoutAsking = 48 << 10;

std::map<const void*, size_t> allowed_shared;
std::map<EmulatedStream*, std::unique_ptr<EmulatedStream>> streams;

// Runs the stream's entries until `until` are done. An entry that waits for another stream runs
// that one first.
void RunUntil(EmulatedStream* stream, uint64_t until) {
  const auto lock = LockDevice();
  if (stream->done >= until) return;
  const OpenMemory open;
  while (stream->done < until) {
    const std::function<void()> entry = std::move(stream->queue.front());
    stream->queue.pop_front();
    entry();
    ++stream->done;
  }
}

void RunAll() {
  const auto lock = LockDevice();
  for (const auto& [stream, owner] : streams) RunUntil(stream, stream->enqueued);
}

cudaError_t Enqueue(EmulatedStream* stream, std::function<void()> entry) {
  const auto lock = LockDevice();
  if (stream == nullptr) {  // the default stream, whose next copy waits for it
    const OpenMemory open;
    entry();
    return cudaSuccess;
  }
  stream->queue.push_back(std::move(entry));
  ++stream->enqueued;
  return cudaSuccess;
}

}  // namespace

size_t AllowedShared(const void* kernel) {
  const auto lock = LockDevice();
  const auto found = allowed_shared.find(kernel);
  return found == allowed_shared.end() ? kSharedWithoutAsking : found->second;
}

cudaError_t Launch(cudaStream_t stream, std::function<void()> run) {
  return Enqueue(stream, std::move(run));
}

}  // namespace cistern::emulator

using cistern::emulator::LockDevice;
using cistern::emulator::OpenMemory;

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
  cistern::emulator::RunAll();
  return cudaSuccess;
}
cudaError_t cudaMalloc(void** data, size_t bytes) {
  *data = cistern::emulator::TakeDevice(bytes);
  return *data == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}
cudaError_t cudaMallocHost(void** data, size_t bytes) {
  *data = cistern::emulator::TakePinned(bytes);
  return *data == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}
cudaError_t cudaFree(void* data) {
  cistern::emulator::RunAll();  // as CUDA does
  return cistern::emulator::GiveBack(data) ? cudaSuccess : cudaErrorInvalidValue;
}
cudaError_t cudaFreeHost(void* data) {
  return cudaFree(data);
}
cudaError_t cudaMemset(void* data, int value, size_t bytes) {
  const OpenMemory open;
  std::memset(data, value, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* data, int value, size_t bytes, cudaStream_t stream) {
  return cistern::emulator::Enqueue(stream, [=] { std::memset(data, value, bytes); });
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind) {
  const OpenMemory open;
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}
// From memory that is not pinned a copy has read when the call returns, and into such memory it is
// over then.
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream) {
  if (!cistern::emulator::IsDeviceOrPinned(from)) {
    const auto* begin = static_cast<const char*>(from);
    return cistern::emulator::Enqueue(stream, [to, held = std::vector<char>(begin, begin + bytes)] {
      std::memcpy(to, held.data(), held.size());
    });
  }
  cistern::emulator::Enqueue(stream, [=] { std::memcpy(to, from, bytes); });
  if (cistern::emulator::IsDeviceOrPinned(to)) return cudaSuccess;
  return cudaStreamSynchronize(stream);
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  const auto lock = LockDevice();
  auto made = std::make_unique<EmulatedStream>();
  *stream = made.get();
  cistern::emulator::streams[*stream] = std::move(made);
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const auto lock = LockDevice();
  cistern::emulator::RunUntil(stream, stream->enqueued);
  cistern::emulator::streams.erase(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  cistern::emulator::RunUntil(stream, stream->enqueued);
  return cudaSuccess;
}
// The stream of the event may end before this entry runs: then the event has happened.
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  const EmulatedEvent waited = *event;
  if (waited.stream == nullptr) return cudaSuccess;
  return cistern::emulator::Enqueue(stream, [waited] {
    if (cistern::emulator::streams.count(waited.stream) > 0) {
      cistern::emulator::RunUntil(waited.stream, waited.after);
    }
  });
}
cudaError_t cudaEventCreate(cudaEvent_t* event) {
  *event = new EmulatedEvent;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const auto lock = LockDevice();
  *event = {stream, stream->enqueued};
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  const auto lock = LockDevice();
  if (cistern::emulator::streams.count(event->stream) > 0) {
    cistern::emulator::RunUntil(event->stream, event->after);
  }
  return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t, cudaEvent_t) {
  *ms = 0;
  return cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute, int value) {
  constexpr int kSharedAtMost = 163 << 10;  // of sm_80, the least of the GPUs that are built for
  if (value > kSharedAtMost) return cudaErrorInvalidValue;
  const auto lock = LockDevice();
  cistern::emulator::allowed_shared[kernel] = static_cast<size_t>(value);
  return cudaSuccess;
}
