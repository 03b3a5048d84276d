#include "cuda/device_context.h"

#include <unistd.h>

#include "cuda/device.h"

namespace cistern {
namespace {

uint64_t MachineBytes() {
  return static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) *
         static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

DeviceContext::DeviceContext() : DeviceContext(Stream(), 0, MachineBytes()) {}

DeviceContext::DeviceContext(Stream stream, int gpu, uint64_t cap_bytes)
    : gpu_(gpu), pool_(stream.device(), gpu, cap_bytes), stream_(std::move(stream)) {}

absl::StatusOr<std::unique_ptr<DeviceContext>> DeviceContext::Open(DeviceKind kind, int gpu) {
  if (kind == DeviceKind::kCpu) return std::make_unique<DeviceContext>();
  CISTERN_ASSIGN_OR_RETURN(Stream stream, Stream::OnGpu(gpu));
  const uint64_t bytes = QueryGpus().gpus[static_cast<size_t>(gpu)].memory_bytes;
  return std::unique_ptr<DeviceContext>(new DeviceContext(std::move(stream), gpu, bytes));
}

absl::StatusOr<Stream> DeviceContext::NewStream() const {
  if (kind() == DeviceKind::kCpu) return Stream();
  return Stream::OnGpu(gpu_);
}

}  // namespace cistern
