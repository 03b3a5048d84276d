// Streams with a CUDA toolkit.
#include "cuda/core/cuda_queue.h"
#include "cuda/core/device.h"
#include "cuda/core/stream.h"

namespace cistern {

absl::Status CudaStatus(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return absl::OkStatus();
  // The runtime keeps this thread's last error until it is read, also after a launch in CUB. Left
  // there, the error would be attributed to the next launch.
  cudaGetLastError();
  return absl::InternalError(absl::StrCat(what, ": ", cudaGetErrorString(error), " (cudaError ",
                                          static_cast<int>(error), ")"));
}

absl::Status WaitStatus(cudaError_t error) {
  const absl::Status status = CudaStatus(error, "an op on the GPU");
  if (status.ok()) return status;
  return WithOptions(
      WithMessage(status,
                  absl::StrCat(status.message(), "; check each op to name the one that failed")),
      {"check_ops"});
}

absl::StatusOr<std::unique_ptr<CudaQueue>> CudaQueue::Create(int gpu, StreamPriority priority) {
  std::unique_ptr<CudaQueue> queue(new CudaQueue(gpu));
  CISTERN_RETURN_IF_ERROR(CudaStatus(cudaSetDevice(gpu), "cudaSetDevice"));
  CISTERN_RETURN_IF_ERROR(CudaStatus(
      cudaDeviceGetAttribute(&queue->multiprocessors_, cudaDevAttrMultiProcessorCount, gpu),
      "cudaDeviceGetAttribute"));
  int last = 0, first = 0;
  CISTERN_RETURN_IF_ERROR(CudaStatus(cudaDeviceGetStreamPriorityRange(&last, &first),
                                     "cudaDeviceGetStreamPriorityRange"));
  CISTERN_RETURN_IF_ERROR(
      CudaStatus(cudaStreamCreateWithPriority(&queue->stream_, cudaStreamNonBlocking,
                                              priority == StreamPriority::kStep ? first : last),
                 "cudaStreamCreateWithPriority"));
  return queue;
}

CudaQueue::~CudaQueue() {
  if (stream_ == nullptr) return;
  cudaStreamSynchronize(stream_);  // work in flight uses the library's workspace
  cudaStreamDestroy(stream_);
}

bool CudaQueue::IsCaptured() const {
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  return CudaStatus(cudaStreamIsCapturing(stream(), &capture), "cudaStreamIsCapturing").ok() &&
         capture != cudaStreamCaptureStatusNone;
}

absl::StatusOr<Blas*> CudaQueue::blas() {
  if (blas_ == nullptr) {  // handle and workspace belong to the current device
    CISTERN_RETURN_IF_ERROR(CudaStatus(cudaSetDevice(gpu_), "cudaSetDevice"));
    CISTERN_ASSIGN_OR_RETURN(blas_, Blas::Create());
  }
  return blas_.get();
}

void CudaQueueDelete::operator()(CudaQueue* queue) const {
  delete queue;
}

absl::StatusOr<Stream> Stream::OnGpu(int gpu, StreamPriority priority) {
  const DeviceQuery query = QueryGpus();
  if (gpu < 0 || gpu >= static_cast<int>(query.gpus.size())) {
    return absl::NotFoundError(absl::StrCat(
        "GPU ", gpu, ": ",
        query.gpus.empty()
            ? query.reason
            : absl::StrCat("the number of GPUs on this machine is ", query.gpus.size())));
  }
  CISTERN_RETURN_IF_ERROR(CheckGpu(query.gpus[static_cast<size_t>(gpu)]));
  CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<CudaQueue> queue, CudaQueue::Create(gpu, priority));
  Stream stream(DeviceKind::kCuda);
  stream.queue_.reset(queue.release());
  return stream;
}

absl::Status Stream::Wait() {
  if (queue_ == nullptr) return status_;
  const absl::Status waited = WaitStatus(cudaStreamSynchronize(queue_->stream()));
  // A launch fails, and records its own name, if an op that was launched before it has failed.
  const bool names_another = absl::IsInternal(status_) && !queue_->waits_after_each_launch();
  if (!waited.ok() && names_another) Forget();
  Record(waited);
  return status_;
}

std::map<std::string, std::string> Stream::ProductKernels() const {
  const Blas* blas = queue_ == nullptr ? nullptr : queue_->blas_if_loaded();
  return blas == nullptr ? std::map<std::string, std::string>() : blas->ChosenKernels();
}

void Stream::WaitAfterEachLaunch() {
  if (queue_ != nullptr) queue_->set_waits_after_each_launch();
}

}  // namespace cistern
