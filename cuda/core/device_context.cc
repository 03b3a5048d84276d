#include "cuda/core/device_context.h"

#include "common/base/machine_limits.h"
#include "cuda/core/gpu_memory.h"

namespace cistern {

DeviceContext::DeviceContext() : DeviceContext(Stream(), 0, MemoryBytes(), false) {}

DeviceContext::DeviceContext(Stream stream, int gpu, uint64_t cap_bytes, bool check_ops)
    : gpu_(gpu),
      check_ops_(check_ops),
      pool_(stream.device(), gpu, cap_bytes),
      stream_(std::move(stream)) {
  if (check_ops_) stream_.WaitAfterEachLaunch();
}

absl::StatusOr<std::unique_ptr<DeviceContext>> DeviceContext::Open(DeviceKind kind, int gpu,
                                                                   bool check_ops) {
  if (kind == DeviceKind::kCpu) return std::make_unique<DeviceContext>();
  CISTERN_ASSIGN_OR_RETURN(Stream stream, Stream::OnGpu(gpu));
  CISTERN_ASSIGN_OR_RETURN(const uint64_t bytes, gpu::FreeBytes(gpu));
  return std::unique_ptr<DeviceContext>(
      new DeviceContext(std::move(stream), gpu, bytes, check_ops));
}

absl::StatusOr<Stream> DeviceContext::NewStream(StreamPriority priority) const {
  if (kind() == DeviceKind::kCpu) return Stream();
  CISTERN_ASSIGN_OR_RETURN(Stream stream, Stream::OnGpu(gpu_, priority));
  if (check_ops_) stream.WaitAfterEachLaunch();
  return stream;
}

}  // namespace cistern
