#include "common/base/pages.h"

#include <malloc.h>
#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "common/base/check.h"

namespace cistern {
namespace {

// Linux 6.1; older headers do not name it.
constexpr int kMadviseCollapse = 25;

std::atomic<bool> keeps_freed_memory = false;

char* Map(size_t bytes) {
  void* start = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return start == MAP_FAILED ? nullptr : static_cast<char*>(start);
}

size_t WholePages(size_t bytes) {
  return (bytes + kHugePageBytes - 1) / kHugePageBytes * kHugePageBytes;
}

size_t Misalignment(const char* start) {
  return reinterpret_cast<uintptr_t>(start) % kHugePageBytes;
}

}  // namespace

char* TryMapPages(size_t bytes) {
  CISTERN_CHECK(bytes > 0 && bytes % kSmallPageBytes == 0);
  // The kernel places mappings next to each other. Where sizes are multiples of a huge page, the
  // first attempt is therefore aligned, and neighbours merge into one mapping (the number of
  // mappings is limited).
  char* start = Map(bytes);
  if (start == nullptr || Misalignment(start) == 0) return start;
  UnmapPages(start, bytes);
  start = Map(bytes + kHugePageBytes);
  if (start == nullptr) return nullptr;
  const size_t before = (kHugePageBytes - Misalignment(start)) % kHugePageBytes;
  if (before > 0) UnmapPages(start, before);
  UnmapPages(start + before + bytes, kHugePageBytes - before);
  return start + before;
}

char* MapPages(size_t bytes) {
  char* start = TryMapPages(bytes);
  if (start != nullptr) return start;
  std::fprintf(stderr,
               "out of memory: the kernel refused %zu bytes for the rows of a table: %s. Give this "
               "server more memory, raise vm.max_map_count, or spread the tables over more "
               "servers.\n",
               bytes, std::strerror(errno));
  std::abort();
}

void UnmapPages(char* start, size_t bytes) {
  CISTERN_CHECK(munmap(start, bytes) == 0);
}

bool CanCollapsePages() {
  static const bool can = madvise(nullptr, 0, kMadviseCollapse) == 0;
  return can;
}

void CollapsePages(char* start, size_t bytes) {
  madvise(start, bytes, kMadviseCollapse);
}

void AdviseHuge(char* start, size_t bytes) {
  madvise(start, bytes, MADV_HUGEPAGE);  // advice only: small pages also work
}

void* TryAllocateHuge(size_t bytes) {
  char* start = TryMapPages(WholePages(bytes));
  if (start != nullptr) AdviseHuge(start, WholePages(bytes));
  return start;
}

void FreeHuge(void* start, size_t bytes) {
  UnmapPages(static_cast<char*>(start), WholePages(bytes));
}

void* TryGrowHuge(void* start, size_t bytes, size_t size) {
  void* grown = TryAllocateHuge(size);
  if (grown == nullptr) return nullptr;
  // Moves the pages, not their bytes, to the beginning of the new mapping.
  const size_t touched = WholePages(bytes);
  void* moved = mremap(start, touched, touched, MREMAP_MAYMOVE | MREMAP_FIXED, grown);
  if (moved != MAP_FAILED) return grown;
  FreeHuge(grown, size);
  return nullptr;
}

void ReturnFreedMemory() {
#ifdef __GLIBC__
  if (!keeps_freed_memory) malloc_trim(0);
#endif
}

void KeepFreedMemory() {
  keeps_freed_memory = true;
#ifdef __GLIBC__
  mallopt(M_MMAP_THRESHOLD, 32 << 20);  // the largest that glibc accepts
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  mallopt(M_TOP_PAD, 64 << 20);  // of the heap of a thread, too
#endif
}

}  // namespace cistern
