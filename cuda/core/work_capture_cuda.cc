// CUDA graphs with a CUDA toolkit.
#include "cuda/core/cuda_queue.h"
#include "cuda/core/work_capture.h"

namespace cistern {
namespace {

struct DestroyGraph {
  void operator()(cudaGraph_t graph) const { cudaGraphDestroy(graph); }
};
using CapturedGraph = std::unique_ptr<std::remove_pointer_t<cudaGraph_t>, DestroyGraph>;

}  // namespace

struct WorkCapture::OnGpu {
  cudaGraphExec_t graph = nullptr;

  ~OnGpu() { Drop(); }
  void Drop() {
    if (graph != nullptr) cudaGraphExecDestroy(graph);
    graph = nullptr;
  }
  // Updates the executable graph to do what `captured` does.
  bool Update(cudaGraph_t captured) {
    if (graph == nullptr) return false;
    cudaGraphExecUpdateResultInfo result;
    if (cudaGraphExecUpdate(graph, captured, &result) == cudaSuccess) return true;
    cudaGetLastError();  // clears the error, or a later call would report it
    Drop();
    return false;
  }
};

WorkCapture::WorkCapture() = default;
WorkCapture::~WorkCapture() = default;

void WorkCapture::Run(Stream& stream, const std::function<void()>& enqueue, Stream* beside,
                      Event* begin) {
  if (!stream.status().ok()) return;
  const bool can = is_warm_ && status_.ok() && stream.queue() != nullptr &&
                   !stream.queue()->waits_after_each_launch();
  is_warm_ = true;
  if (can && RunAsGraph(stream, enqueue, beside, begin)) return;
  if (begin != nullptr) begin->Record(stream);
  enqueue();
}

bool WorkCapture::RunAsGraph(Stream& stream, const std::function<void()>& enqueue, Stream* beside,
                             Event* begin) {
  const cudaStream_t on = stream.queue()->stream();
  const auto give_up = [this](cudaError_t error, const char* what) {
    status_ = CudaStatus(error, what);
    cudaGetLastError();
    return false;
  };
  // Other threads allocate meanwhile, and libraries may make calls that stricter modes forbid.
  cudaError_t error = cudaStreamBeginCapture(on, cudaStreamCaptureModeRelaxed);
  if (error != cudaSuccess) return give_up(error, "cudaStreamBeginCapture");
  enqueue();
  cudaGraph_t made = nullptr;
  error = cudaStreamEndCapture(on, &made);
  const CapturedGraph captured(made);
  if (!stream.status().ok()) {  // the direct run repeats an op's own error
    status_ = stream.status();
    cudaGetLastError();  // clears the error of cudaStreamEndCapture
    stream.Forget();
    if (beside != nullptr) beside->Forget();
    return false;
  }
  if (error != cudaSuccess) return give_up(error, "cudaStreamEndCapture");
  if (gpu_ == nullptr) gpu_ = std::make_unique<OnGpu>();
  if (!gpu_->Update(captured.get())) {
    error = cudaGraphInstantiate(&gpu_->graph, captured.get(), 0);
    if (error != cudaSuccess) return give_up(error, "cudaGraphInstantiate");
    ++graphs_built_;
  }
  if (begin != nullptr) begin->Record(stream);
  stream.Record(CudaStatus(cudaGraphLaunch(gpu_->graph, on), "cudaGraphLaunch"));
  ++graphs_launched_;
  return true;
}

}  // namespace cistern
