// Memory, copies and events, with a CUDA toolkit.
#include "cuda/cuda_queue.h"
#include "cuda/event.h"
#include "cuda/gpu_memory.h"

namespace cistern {
namespace gpu {
namespace {

// A stream of kCuda without a queue has nowhere to copy.
bool HasQueue(Stream& stream) {
  if (stream.queue() == nullptr) {
    stream.Record(absl::UnimplementedError("the stream has no GPU: make it with Stream::OnGpu"));
  }
  return stream.status().ok();
}

}  // namespace

absl::StatusOr<void*> Allocate(int gpu, MemoryPlace place, size_t bytes) {
  CISTERN_RETURN_IF_ERROR(CudaStatus(cudaSetDevice(gpu), "cudaSetDevice"));
  void* data = nullptr;
  cudaError_t error =
      place == MemoryPlace::kDevice ? cudaMalloc(&data, bytes) : cudaMallocHost(&data, bytes);
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // it must not surface in a later call
    return absl::ResourceExhaustedError(place == MemoryPlace::kDevice
                                            ? "the GPU has not so much memory free"
                                            : "the host has not so much memory to pin");
  }
  CISTERN_RETURN_IF_ERROR(CudaStatus(error, "taking memory"));
  error = cudaMemset(data, 0, bytes);
  if (error != cudaSuccess) Free(gpu, place, data);
  CISTERN_RETURN_IF_ERROR(CudaStatus(error, "cudaMemset"));
  // cudaMemset may return before it is done, and other streams would not wait for it.
  CISTERN_RETURN_IF_ERROR(CudaStatus(cudaDeviceSynchronize(), "cudaDeviceSynchronize"));
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

void Copy(const void* from, void* to, size_t bytes, Stream& stream) {
  if (!HasQueue(stream)) return;
  stream.Record(CudaStatus(
      cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream.queue()->stream()), "a copy"));
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
  if (device == DeviceKind::kCpu) return event;
  event.gpu_.reset(new OnGpu);
  CISTERN_RETURN_IF_ERROR(CudaStatus(cudaEventCreate(&event.gpu_->event), "cudaEventCreate"));
  return event;
}

void Event::Record(Stream& stream) {
  if (gpu_ == nullptr) {
    at_ = std::chrono::steady_clock::now();
  } else if (gpu::HasQueue(stream)) {
    stream.Record(
        CudaStatus(cudaEventRecord(gpu_->event, stream.queue()->stream()), "cudaEventRecord"));
  }
}

void Event::LetWait(Stream& stream) {
  if (gpu_ == nullptr || !gpu::HasQueue(stream)) return;
  stream.Record(CudaStatus(cudaStreamWaitEvent(stream.queue()->stream(), gpu_->event, 0),
                           "cudaStreamWaitEvent"));
}

absl::Status Event::Wait() {
  if (gpu_ == nullptr) return absl::OkStatus();
  return WaitStatus(cudaEventSynchronize(gpu_->event));
}

absl::StatusOr<bool> Event::HasHappened() const {
  if (gpu_ == nullptr) return true;
  const cudaError_t asked = cudaEventQuery(gpu_->event);
  if (asked == cudaErrorNotReady) return false;
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
