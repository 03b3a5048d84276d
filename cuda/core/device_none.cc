// The build without a CUDA toolkit.
#include "cuda/core/device.h"

#include "cuda/core/event.h"
#include "cuda/core/gpu_memory.h"
#include "cuda/core/stream.h"
#include "cuda/core/work_capture.h"

namespace cistern {
namespace {

absl::Status NoCuda() {
  return absl::UnimplementedError("this build has no CUDA");
}

}  // namespace

DeviceQuery QueryGpus() {
  DeviceQuery query;
  query.reason = "this build has no CUDA";
  return query;
}

std::string DescribeCudaBuild() {
  return "no CUDA";
}

absl::Status TestGpu(int index) {
  return absl::NotFoundError(absl::StrCat("GPU ", index, ": this build has no CUDA"));
}

void CudaQueueDelete::operator()(CudaQueue*) const {}

absl::StatusOr<Stream> Stream::OnGpu(int gpu, StreamPriority) {
  return absl::NotFoundError(absl::StrCat("GPU ", gpu, ": this build has no CUDA"));
}

absl::Status Stream::Wait() {
  return status_;
}

std::map<std::string, std::string> Stream::ProductKernels() const {
  return {};
}

void Stream::WaitAfterEachLaunch() {}

namespace gpu {

absl::StatusOr<void*> Allocate(int, MemoryPlace, size_t, MemoryFill) {
  return NoCuda();
}

void Free(int, MemoryPlace, void*) {}

absl::StatusOr<uint64_t> FreeBytes(int) {
  return NoCuda();
}

void Copy(const void*, void*, size_t, Stream& stream) {
  stream.Record(NoCuda());
}

void Zero(void*, size_t, Stream& stream) {
  stream.Record(NoCuda());
}

}  // namespace gpu

struct Event::OnGpu {};
void Event::Delete::operator()(OnGpu* event) const {
  delete event;
}

absl::StatusOr<Event> Event::Create(DeviceKind device) {
  if (device == DeviceKind::kCuda) return NoCuda();
  return Event();
}

void Event::Record(Stream&) {
  at_ = std::chrono::steady_clock::now();
}

void Event::MakeWait(Stream&) {}

absl::Status Event::Wait() {
  return absl::OkStatus();
}

absl::StatusOr<bool> Event::HasHappened() const {
  return true;
}

absl::StatusOr<double> Event::MillisecondsSince(const Event& earlier) const {
  return std::chrono::duration<double, std::milli>(at_ - earlier.at_).count();
}

struct WorkCapture::OnGpu {};
WorkCapture::WorkCapture() = default;
WorkCapture::~WorkCapture() = default;

void WorkCapture::Run(Stream& stream, const std::function<void()>& enqueue, Stream*, Event* begin) {
  if (begin != nullptr) begin->Record(stream);
  enqueue();
}

}  // namespace cistern
