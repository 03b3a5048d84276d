// Memory mapped directly from the kernel, for structures of megabytes.
//
// For a random read, address translation costs as much as memory latency, so randomly read data
// should be on 2 MiB pages. But one touch makes a whole huge page resident. Hence two ways to get
// huge pages: CollapsePages converts small pages that are already full, AdviseHuge asks for huge
// pages in advance.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

namespace cistern {

inline constexpr size_t kSmallPageBytes = 4 << 10;
inline constexpr size_t kHugePageBytes = 2 << 20;

// Returns `bytes` of zeros, aligned to kHugePageBytes, on small pages that become resident when
// touched; null if the kernel refuses.
//
// bytes: a multiple of kSmallPageBytes, not zero.
char* TryMapPages(size_t bytes);
// The same for the rows of a server. Stops the process with a message for the operator instead of
// returning null: a server that cannot keep a committed row must not continue.
char* MapPages(size_t bytes);
void UnmapPages(char* start, size_t bytes);

// Whether this kernel can move pages onto huge pages: Linux since 6.1, unless built without them.
bool CanCollapsePages();
// Moves the pages of [start, start + bytes), which must be multiples of kHugePageBytes, onto huge
// pages, if there are any. Costs more than filling them. Other threads may use or unmap the
// pages meanwhile.
void CollapsePages(char* start, size_t bytes);

// Requests huge pages for the first touch of [start, start + bytes). Only whole huge pages in it
// count.
void AdviseHuge(char* start, size_t bytes);

// Arrays of this size and more are worth huge pages.
inline constexpr size_t kHugeFrom = size_t{8} << 20;
// Returns `bytes` (at least kHugeFrom) of zeros on huge pages; null if there is no memory.
void* TryAllocateHuge(size_t bytes);
void FreeHuge(void* start, size_t bytes);
// Enlarges what TryAllocateHuge(bytes) returned to `size` bytes, which are at another address then.
// What was touched stays resident; its contents and the others' are undefined. Null if there is no
// memory: `start` is still valid then.
void* TryGrowHuge(void* start, size_t bytes, size_t size);

// An allocator of std::vector for arrays that are read at random: from kHugeFrom bytes on, memory
// is on huge pages. Throws std::bad_alloc if there is no memory, as std::allocator does.
template <class T>
class HugePageAllocator {
 public:
  using value_type = T;
  HugePageAllocator() = default;
  template <class U>
  HugePageAllocator(const HugePageAllocator<U>&) {}  // NOLINT: allocators convert
  T* allocate(size_t n) {
    if (n > PTRDIFF_MAX / sizeof(T)) throw std::bad_alloc();
    if (n * sizeof(T) < kHugeFrom) return std::allocator<T>().allocate(n);
    void* start = TryAllocateHuge(n * sizeof(T));
    if (start == nullptr) throw std::bad_alloc();
    return static_cast<T*>(start);
  }
  void deallocate(T* start, size_t n) {
    if (n * sizeof(T) < kHugeFrom) return std::allocator<T>().deallocate(start, n);
    FreeHuge(start, n * sizeof(T));
  }
  bool operator==(const HugePageAllocator&) const = default;
};
template <class T>
using HugePageVector = std::vector<T, HugePageAllocator<T>>;

// Makes malloc return free pages to the system, where it can.
void ReturnFreedMemory();
// For a process that trains until it ends: what one pass frees, the next one needs, and getting
// pages from the system costs more than filling them. From now on malloc keeps free pages, and
// ReturnFreedMemory does nothing.
void KeepFreedMemory();

}  // namespace cistern
