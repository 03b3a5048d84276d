// Memory aligned for direct I/O, which bypasses the page cache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

namespace cistern {

// An uninitialized buffer whose address is a multiple of kAlignment.
//
// Threads: one at a time.
class AlignedBuffer {
 public:
  // The alignment of addresses, file offsets and sizes that every block device accepts.
  static constexpr size_t kAlignment = 4096;

  static bool IsAligned(uint64_t x) { return x % kAlignment == 0; }
  static size_t RoundDown(size_t bytes) { return bytes / kAlignment * kAlignment; }
  static size_t RoundUp(size_t bytes) { return RoundDown(bytes + kAlignment - 1); }

  AlignedBuffer() = default;
  // bytes: a multiple of kAlignment. Throws std::bad_alloc as `new` does.
  explicit AlignedBuffer(size_t bytes)
      : memory_(static_cast<char*>(std::aligned_alloc(kAlignment, bytes))), size_(bytes) {
    if (memory_ == nullptr) throw std::bad_alloc();
  }

  char* data() const { return memory_.get(); }
  size_t size() const { return size_; }

 private:
  struct Free {
    void operator()(char* memory) const { std::free(memory); }
  };

  std::unique_ptr<char, Free> memory_;
  size_t size_ = 0;
};

}  // namespace cistern
