// The runtime API of cuda_runtime.h. Enqueued work runs as late as CUDA allows, when a caller waits
// for it, so a missing wait shows in every run.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "test/cuda/emulator/cuda_runtime.h"
#include "test/cuda/emulator/device_memory.h"
#include "test/cuda/emulator/graphs.h"

struct EmulatedStream {
  int gpu = 0;
  int priority = 0;  // without effect: streams run as late as CUDA allows
  std::deque<std::function<void()>> queue;
  uint64_t enqueued = 0, done = 0;         // total number of entries
  std::shared_ptr<EmulatedGraph> capture;  // during a capture: the graph, and
  size_t line = 0;                         // the stream's line in it
};

struct EmulatedEvent {
  int gpu = 0;
  EmulatedStream* stream = nullptr;        // the stream of the last record
  uint64_t after = 0;                      // completes when `stream` has done this many entries
  std::shared_ptr<EmulatedGraph> capture;  // or when line `line` of this graph has
  size_t line = 0;
};

struct EmulatedGraphExec {
  std::shared_ptr<const EmulatedGraph> graph;
};

namespace cistern::emulator {
namespace {

constexpr size_t kSharedWithoutAsking = 48 << 10;

// Properties of the emulated machine, from environment variables.
int FromEnvironment(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoi(text);
}

constexpr int kRuntimeVersion = 12000;
const int gpus = FromEnvironment("CISTERN_EMULATED_GPUS", 1);
const int driver_version = FromEnvironment("CISTERN_EMULATED_DRIVER", kRuntimeVersion);
const int compute_major = FromEnvironment("CISTERN_EMULATED_CAPABILITY", 8);
const size_t memory_bytes =
    static_cast<size_t>(FromEnvironment("CISTERN_EMULATED_MEMORY_MB", kMemoryBytes >> 20)) << 20;
const size_t free_bytes =  // at program start
    static_cast<size_t>(
        FromEnvironment("CISTERN_EMULATED_FREE_MB", static_cast<int>(memory_bytes >> 20)))
    << 20;
thread_local int gpu_of_thread = 0;
thread_local cudaError_t last_error = cudaSuccess;

// The number of kernels run so far, and the index of the one that faults; 0: none.
std::atomic<uint64_t> kernels = 0;
const uint64_t faulty_kernel = [] {
  const char* text = std::getenv("CISTERN_EMULATED_FAULT");
  return text == nullptr ? 0 : std::strtoull(text, nullptr, 10);
}();
bool IsBroken() {
  return faulty_kernel > 0 && kernels >= faulty_kernel;
}

std::map<const void*, size_t> allowed_shared;
std::map<EmulatedStream*, std::unique_ptr<EmulatedStream>> streams;

// Runs entries of the stream until `until` are done. An entry that waits for another stream first
// runs that stream.
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

bool IsCapturing() {
  return std::any_of(streams.begin(), streams.end(),
                     [](const auto& stream) { return stream.first->capture != nullptr; });
}

cudaError_t Enqueue(EmulatedStream* stream, std::function<void()> entry,
                    const char* kind = "copy") {
  const auto lock = LockDevice();
  if (stream != nullptr && stream->gpu != gpu_of_thread) {
    return Keep(cudaErrorInvalidResourceHandle);
  }
  if (stream != nullptr && stream->capture != nullptr) {
    stream->capture->lines[stream->line].entries.push_back(
        {kind, [entry = std::move(entry)](const EmulatedGraph::RunLine&) { entry(); }});
    return cudaSuccess;
  }
  if (stream == nullptr) {  // the default stream is synchronous
    const OpenMemory open;
    entry();
    return cudaSuccess;
  }
  stream->queue.push_back(std::move(entry));
  ++stream->enqueued;
  return cudaSuccess;
}

}  // namespace

cudaError_t Keep(cudaError_t error) {
  return last_error = error;
}

cudaStream_t StreamOfThread() {
  thread_local std::map<int, cudaStream_t> made;  // by GPU; never destroyed
  cudaStream_t& stream = made[gpu_of_thread];
  if (stream == nullptr) cudaStreamCreateWithFlags(&stream, 0);
  return stream;
}

size_t AllowedShared(const void* kernel) {
  const auto lock = LockDevice();
  const auto found = allowed_shared.find(kernel);
  return found == allowed_shared.end() ? kSharedWithoutAsking : found->second;
}

cudaError_t Launch(cudaStream_t stream, std::function<void()> run) {
  if (IsBroken()) return Keep(cudaErrorIllegalAddress);
  const auto kernel = [run = std::move(run)] {
    ++kernels;
    if (!IsBroken()) run();
  };
  return Enqueue(stream, kernel, "kernel");
}

namespace {

// Makes the work enqueued on `stream` from now on wait for the captured event.
void WaitInGraph(EmulatedStream* stream, const EmulatedEvent& event) {
  if (stream->capture == nullptr) {  // the stream joins the capture
    stream->capture = event.capture;
    stream->line = event.capture->lines.size();
    event.capture->lines.emplace_back();
  }
  EmulatedGraph::Line& waited = event.capture->lines[event.line];
  waited.joined = std::max(waited.joined, static_cast<size_t>(event.after));
  event.capture->lines[stream->line].entries.push_back(
      {"wait", [line = event.line, after = event.after](const EmulatedGraph::RunLine& run) {
         run(line, after);
       }});
}

}  // namespace

}  // namespace cistern::emulator

using cistern::emulator::Keep;
using cistern::emulator::LockDevice;
using cistern::emulator::OpenMemory;

const char* cudaGetErrorString(cudaError_t error) {
  if (error == cudaErrorIllegalAddress) return "an illegal memory access was encountered";
  return error == cudaSuccess ? "no error" : "error of the emulated GPU";
}
cudaError_t cudaGetLastError() {
  return std::exchange(cistern::emulator::last_error, cudaSuccess);
}
cudaError_t cudaPeekAtLastError() {
  return cistern::emulator::last_error;
}
cudaError_t cudaGetDeviceCount(int* count) {
  if (cistern::emulator::driver_version < cistern::emulator::kRuntimeVersion) {
    return Keep(cudaErrorInsufficientDriver);
  }
  *count = cistern::emulator::gpus;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {"emulated GPU", cistern::emulator::memory_bytes, cistern::emulator::compute_major,
                 0, 4};
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int) {
  *value = 4;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = cistern::emulator::kRuntimeVersion;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = cistern::emulator::driver_version;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= cistern::emulator::gpus) return Keep(cudaErrorInvalidValue);
  cistern::emulator::gpu_of_thread = device;
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
  const auto lock = LockDevice();
  if (cistern::emulator::IsCapturing()) return Keep(cudaErrorStreamCaptureUnsupported);
  cistern::emulator::RunAll();
  return cudaSuccess;
}
cudaError_t cudaMalloc(void** data, size_t bytes) {
  *data = cistern::emulator::TakeDevice(bytes);
  return *data == nullptr ? Keep(cudaErrorMemoryAllocation) : cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t* free, size_t* all) {
  *free = cistern::emulator::free_bytes;
  *all = cistern::emulator::memory_bytes;
  return cudaSuccess;
}
cudaError_t cudaMallocHost(void** data, size_t bytes) {
  *data = cistern::emulator::TakePinned(bytes);
  return *data == nullptr ? Keep(cudaErrorMemoryAllocation) : cudaSuccess;
}
cudaError_t cudaFree(void* data) {
  cistern::emulator::RunAll();  // cudaFree synchronizes, as in CUDA
  return cistern::emulator::GiveBack(data) ? cudaSuccess : Keep(cudaErrorInvalidValue);
}
cudaError_t cudaFreeHost(void* data) {
  return cudaFree(data);
}
cudaError_t cudaMemset(void* data, int value, size_t bytes) {
  const OpenMemory open;
  if (cistern::emulator::IsCapturing()) return Keep(cudaErrorStreamCaptureUnsupported);
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
// A copy from pageable memory has read its source when the call returns; a copy to pageable memory
// has completed.
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream) {
  if (!cistern::emulator::IsDeviceOrPinned(from)) {
    if (stream->capture != nullptr)
      return Keep(cudaErrorInvalidValue);  // the graph would read it at launch
    const auto* begin = static_cast<const char*>(from);
    return cistern::emulator::Enqueue(stream, [to, held = std::vector<char>(begin, begin + bytes)] {
      std::memcpy(to, held.data(), held.size());
    });
  }
  const cudaError_t error =
      cistern::emulator::Enqueue(stream, [=] { std::memcpy(to, from, bytes); });
  if (error != cudaSuccess || cistern::emulator::IsDeviceOrPinned(to)) return error;
  return cudaStreamSynchronize(stream);
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return cudaStreamCreateWithPriority(stream, flags, 0);
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int priority) {
  const auto lock = LockDevice();
  auto made = std::make_unique<EmulatedStream>();
  made->gpu = cistern::emulator::gpu_of_thread;
  made->priority = priority;
  *stream = made.get();
  cistern::emulator::streams[*stream] = std::move(made);
  return cudaSuccess;
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}
cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
  *priority = stream->priority;
  return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  const bool captured = stream != nullptr && stream->capture != nullptr;
  *status = captured ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const auto lock = LockDevice();
  cistern::emulator::RunUntil(stream, stream->enqueued);
  cistern::emulator::streams.erase(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (stream->capture != nullptr) return Keep(cudaErrorInvalidValue);
  cistern::emulator::RunUntil(stream, stream->enqueued);
  return cistern::emulator::IsBroken() ? Keep(cudaErrorIllegalAddress) : cudaSuccess;
}
// The event's stream may be destroyed before this entry runs; the event has then completed.
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  const EmulatedEvent waited = *event;
  if (waited.stream == nullptr) return cudaSuccess;
  if (waited.capture != nullptr) {
    const auto lock = LockDevice();
    // The event's capture must still be active.
    if (waited.stream->capture != waited.capture) return Keep(cudaErrorInvalidValue);
    cistern::emulator::WaitInGraph(stream, waited);
    return cudaSuccess;
  }
  if (stream->capture != nullptr)
    return Keep(cudaErrorInvalidValue);  // a capture cannot wait for outside work
  return cistern::emulator::Enqueue(stream, [waited] {
    if (cistern::emulator::streams.count(waited.stream) > 0) {
      cistern::emulator::RunUntil(waited.stream, waited.after);
    }
  });
}
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  const auto lock = LockDevice();
  if (stream->capture != nullptr) return Keep(cudaErrorInvalidValue);
  stream->capture = std::make_shared<EmulatedGraph>();
  stream->capture->lines.emplace_back();
  stream->line = 0;
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  const auto lock = LockDevice();
  const std::shared_ptr<EmulatedGraph> made = stream->capture;
  if (made == nullptr || stream->line != 0) return Keep(cudaErrorInvalidValue);
  for (const auto& [other, owner] : cistern::emulator::streams) {
    if (other->capture == made) other->capture = nullptr;
  }
  if (!made->IsJoined()) return Keep(cudaErrorInvalidValue);
  *graph = new EmulatedGraph(*made);
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long) {
  *exec = new EmulatedGraphExec{std::make_shared<EmulatedGraph>(*graph)};
  return cudaSuccess;
}
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph,
                                cudaGraphExecUpdateResultInfo*) {
  if (!exec->graph->IsLike(*graph)) return Keep(cudaErrorInvalidValue);
  exec->graph = std::make_shared<EmulatedGraph>(*graph);  // earlier launches keep theirs
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  return cistern::emulator::Enqueue(stream, [graph = exec->graph] { graph->Run(); });
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  delete exec;
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* event) {
  *event = new EmulatedEvent;
  (*event)->gpu = cistern::emulator::gpu_of_thread;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const auto lock = LockDevice();
  if (event->gpu != stream->gpu) return Keep(cudaErrorInvalidResourceHandle);
  const bool captured = stream->capture != nullptr;
  *event = {event->gpu, stream,
            captured ? stream->capture->lines[stream->line].entries.size() : stream->enqueued,
            stream->capture, stream->line};
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (event->capture != nullptr) return Keep(cudaErrorInvalidValue);
  const auto lock = LockDevice();
  if (cistern::emulator::streams.count(event->stream) > 0) {
    cistern::emulator::RunUntil(event->stream, event->after);
  }
  return cistern::emulator::IsBroken() ? Keep(cudaErrorIllegalAddress) : cudaSuccess;
}
// Returns "not ready" on the first call, even where a GPU would be done; the second call finds the
// event complete.
cudaError_t cudaEventQuery(cudaEvent_t event) {
  const auto lock = LockDevice();
  const bool later = event->capture == nullptr &&
                     cistern::emulator::streams.count(event->stream) > 0 &&
                     event->stream->done < event->after;
  const cudaError_t error = cudaEventSynchronize(event);
  return error == cudaSuccess && later ? Keep(cudaErrorNotReady) : error;
}
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t from, cudaEvent_t to) {
  if (from == nullptr || to == nullptr) return Keep(cudaErrorInvalidResourceHandle);
  *ms = 1;
  return cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute, int value) {
  constexpr int kMaxShared = 99 << 10;  // sm_86 and sm_89; sm_80 has more
  if (value > kMaxShared) return Keep(cudaErrorInvalidValue);
  const auto lock = LockDevice();
  cistern::emulator::allowed_shared[kernel] = static_cast<size_t>(value);
  return cudaSuccess;
}
