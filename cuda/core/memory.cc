#include "cuda/core/memory.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "common/base/check.h"
#include "common/base/pages.h"
#include "cuda/core/gpu_memory.h"

namespace cistern {
namespace {

constexpr size_t kAlignment = 256;  // as cudaMalloc
// At most this many blocks are kept: the tables of a pass.
constexpr size_t kKeptMax = 8;

}  // namespace

Memory::~Memory() {
  if (pool_ != nullptr) pool_->GiveBack(place_, tag_, data_, bytes_);
}

MemoryPool::MemoryPool(DeviceKind device, int gpu, uint64_t cap_bytes)
    : device_(device), gpu_(gpu), cap_bytes_(cap_bytes) {}

MemoryPool::~MemoryPool() {
  absl::MutexLock lock(&mutex_);
  CISTERN_CHECK(bytes_ == 0);
  for (const auto& [size, data] : kept_) FreeHuge(data, size);
}

// Large memory is on huge pages, because rows are read at random.
absl::StatusOr<void*> MemoryPool::TakeHost(size_t bytes, MemoryFill fill) {
  const auto out_of_memory = [] {
    return absl::ResourceExhaustedError("the host is out of memory");
  };
  if (bytes < kHugeFrom) {
    const size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    void* data = std::aligned_alloc(kAlignment, rounded);
    if (data == nullptr) return out_of_memory();
    std::memset(data, 0, rounded);
    return data;
  }
  if (bytes > PTRDIFF_MAX / 2) return out_of_memory();
  const auto kept = kept_.lower_bound(bytes);
  if (kept != kept_.end() && kept->first / 2 < bytes) {
    const auto [size, data] = *kept;
    kept_.erase(kept);
    large_[data] = size;
    if (fill == MemoryFill::kZeros) std::memset(data, 0, bytes);
    return data;
  }
  const size_t size = bytes + bytes / 16;  // so that it also fits a pass that is a little larger
  void* data = nullptr;
  // A block that is too small now is so for later passes too: its pages become part of the new one.
  if (kept != kept_.begin()) {
    const auto [small_size, small] = *std::prev(kept);
    kept_.erase(std::prev(kept));
    data = TryGrowHuge(small, small_size, size);
    if (data == nullptr) FreeHuge(small, small_size);
    if (data != nullptr && fill == MemoryFill::kZeros)
      std::memset(data, 0, std::min(bytes, small_size));
  }
  if (data == nullptr) data = TryAllocateHuge(size);
  if (data == nullptr) return out_of_memory();
  large_[data] = size;
  return data;
}

void MemoryPool::GiveBackHost(void* data, size_t bytes) {
  if (bytes < kHugeFrom) return std::free(data);
  const auto block = large_.find(data);
  kept_.emplace(block->second, data);
  large_.erase(block);
  while (kept_.size() > kKeptMax) {
    const auto smallest = kept_.begin();
    FreeHuge(smallest->second, smallest->first);
    kept_.erase(smallest);
  }
}

absl::StatusOr<Memory> MemoryPool::Take(MemoryPlace place, size_t bytes, absl::string_view tag,
                                        MemoryFill fill) {
  Memory memory;
  if (bytes == 0) return memory;
  absl::MutexLock lock(&mutex_);
  const auto refuse = [&](absl::string_view why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    std::string held;
    for (const auto& [key, use] : uses_) {
      if (use.first > 0) absl::StrAppend(&held, ", ", use.first, " for ", key.second);
    }
    return absl::ResourceExhaustedError(
        absl::StrCat(bytes, " bytes for ", tag, ": ", why, "; the pool's limit is ", cap_bytes_,
                     " bytes, of which ", bytes_, " are in use", held));
  };
  if (bytes > cap_bytes_ - bytes_) return refuse("not enough memory left in the pool");
  const absl::StatusOr<void*> data =
      device_ == DeviceKind::kCpu ? TakeHost(bytes, fill) : gpu::Allocate(gpu_, place, bytes, fill);
  if (!data.ok() && absl::IsResourceExhausted(data.status())) {
    return refuse(data.status().message());
  }
  CISTERN_RETURN_IF_ERROR(data.status());
  memory.pool_ = this;
  memory.place_ = place;
  memory.tag_ = std::string(tag);
  memory.data_ = *data;
  memory.bytes_ = bytes;
  bytes_ += bytes;
  auto& [now, most] = uses_[{place, memory.tag_}];
  now += bytes;
  most = std::max(most, now);
  return memory;
}

void MemoryPool::GiveBack(MemoryPlace place, const std::string& tag, void* data, size_t bytes) {
  if (device_ != DeviceKind::kCpu) gpu::Free(gpu_, place, data);
  absl::MutexLock lock(&mutex_);
  if (device_ == DeviceKind::kCpu) GiveBackHost(data, bytes);
  bytes_ -= bytes;
  uses_[{place, tag}].first -= bytes;
}

uint64_t MemoryPool::bytes() const {
  absl::MutexLock lock(&mutex_);
  return bytes_;
}

std::vector<MemoryUse> MemoryPool::uses() const {
  absl::MutexLock lock(&mutex_);
  std::vector<MemoryUse> uses;
  for (const auto& [key, use] : uses_) {
    uses.push_back({key.second, key.first, use.first, use.second});
  }
  return uses;
}

void CopyToDevice(const void* host, void* device, size_t bytes, Stream& stream) {
  CopyOnDevice(host, device, bytes, stream);
}

void CopyToHost(const void* device, void* host, size_t bytes, Stream& stream) {
  CopyOnDevice(device, host, bytes, stream);
}

void CopyOnDevice(const void* from, void* to, size_t bytes, Stream& stream) {
  if (bytes == 0) return;
  if (stream.device() == DeviceKind::kCuda) return gpu::Copy(from, to, bytes, stream);
  std::memcpy(to, from, bytes);
}

void ZeroOnDevice(void* device, size_t bytes, Stream& stream) {
  if (bytes == 0) return;
  if (stream.device() == DeviceKind::kCuda) return gpu::Zero(device, bytes, stream);
  std::memset(device, 0, bytes);
}

}  // namespace cistern
