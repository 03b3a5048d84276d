// Memory, copies and events with a CUDA toolkit.
#include <cstring>

#include "cuda/core/cuda_queue.h"
#include "cuda/core/event.h"
#include "cuda/core/gpu_memory.h"

namespace cistern {
namespace gpu {
namespace {

// A kCuda stream without a queue has no GPU to copy on.
bool HasQueue(Stream& stream) {
  if (stream.queue() == nullptr) {
    stream.Record(absl::UnimplementedError("the stream has no GPU: create it with Stream::OnGpu"));
  }
  return stream.status().ok();
}

// Uses the per-thread default stream: while another thread captures a step, CUDA rejects
// cudaDeviceSynchronize and waits on the legacy default stream.
absl::Status ZeroAndWait(void* data, size_t bytes) {
  CISTERN_RETURN_IF_ERROR(
      CudaStatus(cudaMemsetAsync(data, 0, bytes, cudaStreamPerThread), "cudaMemsetAsync"));
  return CudaStatus(cudaStreamSynchronize(cudaStreamPerThread), "zeroing memory");
}

}  // namespace

absl::StatusOr<void*> Allocate(int gpu, MemoryPlace place, size_t bytes, MemoryFill fill) {
  CISTERN_RETURN_IF_ERROR(CudaStatus(cudaSetDevice(gpu), "cudaSetDevice"));
  void* data = nullptr;
  const bool on_device = place == MemoryPlace::kDevice;
  const cudaError_t error = on_device ? cudaMalloc(&data, bytes) : cudaMallocHost(&data, bytes);
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // clears the error, or a later call would report it
    return absl::ResourceExhaustedError(on_device ? "the GPU has not enough free memory"
                                                  : "the host has not enough memory to pin");
  }
  CISTERN_RETURN_IF_ERROR(CudaStatus(error, "allocating memory"));
  if (!on_device) {
    std::memset(data, 0, bytes);
    return data;
  }
  if (fill == MemoryFill::kAny) return data;
  const absl::Status zeroed = ZeroAndWait(data, bytes);
  if (!zeroed.ok()) {
    Free(gpu, place, data);
    return zeroed;
  }
  return data;
}

void Free(int gpu, MemoryPlace place, void* data) {
  cudaSetDevice(gpu);
  if (place == MemoryPlace::kDevice) {
    cudaFree(data);
  } else {
    cudaFreeHost(data);
  }
}

absl::StatusOr<uint64_t> FreeBytes(int gpu) {
  CISTERN_RETURN_IF_ERROR(CudaStatus(cudaSetDevice(gpu), "cudaSetDevice"));
  size_t free = 0, all = 0;
  CISTERN_RETURN_IF_ERROR(CudaStatus(cudaMemGetInfo(&free, &all), "cudaMemGetInfo"));
  return free;
}

void Copy(const void* from, void* to, size_t bytes, Stream& stream) {
  if (!HasQueue(stream)) return;
  stream.Record(CudaStatus(
      cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream.queue()->stream()), "copying"));
}

void Zero(void* data, size_t bytes, Stream& stream) {
  if (!HasQueue(stream)) return;
  stream.Record(
      CudaStatus(cudaMemsetAsync(data, 0, bytes, stream.queue()->stream()), "cudaMemsetAsync"));
}

}  // namespace gpu

struct Event::OnGpu {
  cudaEvent_t event = nullptr;
  ~OnGpu() {
    if (event != nullptr) cudaEventDestroy(event);
  }
};
void Event::Delete::operator()(OnGpu* event) const {
  delete event;
}

absl::StatusOr<Event> Event::Create(DeviceKind device) {
  Event event;
  if (device == DeviceKind::kCuda) event.gpu_.reset(new OnGpu);
  return event;
}

void Event::Record(Stream& stream) {
  if (gpu_ == nullptr) {
    at_ = std::chrono::steady_clock::now();
    return;
  }
  if (!gpu::HasQueue(stream)) return;
  const cudaStream_t on = stream.queue()->stream();
  if (gpu_->event == nullptr) {
    stream.Record(CudaStatus(cudaEventCreate(&gpu_->event), "cudaEventCreate"));
    if (!stream.status().ok()) return;
  }
  stream.Record(CudaStatus(cudaEventRecord(gpu_->event, on), "cudaEventRecord"));
}

void Event::MakeWait(Stream& stream) {
  if (gpu_ == nullptr || gpu_->event == nullptr || !gpu::HasQueue(stream)) return;
  stream.Record(CudaStatus(cudaStreamWaitEvent(stream.queue()->stream(), gpu_->event, 0),
                           "cudaStreamWaitEvent"));
}

absl::Status Event::Wait() {
  if (gpu_ == nullptr || gpu_->event == nullptr) return absl::OkStatus();
  return WaitStatus(cudaEventSynchronize(gpu_->event));
}

absl::StatusOr<bool> Event::HasHappened() const {
  if (gpu_ == nullptr || gpu_->event == nullptr) return true;
  const cudaError_t asked = cudaEventQuery(gpu_->event);
  if (asked == cudaErrorNotReady) {
    cudaGetLastError();  // the runtime stores this as an error, too (CudaStatus)
    return false;
  }
  CISTERN_RETURN_IF_ERROR(WaitStatus(asked));
  return true;
}

absl::StatusOr<double> Event::MillisecondsSince(const Event& earlier) const {
  if (gpu_ == nullptr) {
    return std::chrono::duration<double, std::milli>(at_ - earlier.at_).count();
  }
  float ms = 0;
  CISTERN_RETURN_IF_ERROR(CudaStatus(cudaEventElapsedTime(&ms, earlier.gpu_->event, gpu_->event),
                                     "cudaEventElapsedTime"));
  return static_cast<double>(ms);
}

}  // namespace cistern
