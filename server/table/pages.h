// Memory mapped directly from the kernel, for structures of megabytes.
//
// For a random read, address translation costs as much as memory latency, so randomly read data
// should be on 2 MiB pages. But one touch makes a whole huge page resident. Hence two ways to get
// huge pages: CollapsePages converts small pages that are already full, AdviseHuge asks for huge
// pages in advance.
#pragma once

#include <cstddef>

namespace cistern {

inline constexpr size_t kSmallPageBytes = 4 << 10;
inline constexpr size_t kHugePageBytes = 2 << 20;

// Returns `bytes` of zeros, aligned to kHugePageBytes, on small pages that become resident when
// touched. If there is no memory, it stops the process with a message for the operator: a server
// that cannot keep a committed row must not continue.
//
// bytes: a multiple of kSmallPageBytes, not zero.
char* MapPages(size_t bytes);
void UnmapPages(char* start, size_t bytes);

// Moves the pages of [start, start + bytes), which must be multiples of kHugePageBytes, onto huge
// pages. Returns false if this kernel cannot (Linux before 6.1, or built without the feature); true
// does not guarantee success.
bool CollapsePages(char* start, size_t bytes);

// Requests huge pages for the first touch of [start, start + bytes). Only whole huge pages in it
// count.
void AdviseHuge(char* start, size_t bytes);

// Makes malloc return free pages to the system, where it can.
void ReturnFreedMemory();

}  // namespace cistern
