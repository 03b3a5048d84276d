// Memory straight from the kernel, for structures of megabytes.
//
// A random read costs as much address translation as it costs memory latency, so what is read at
// random should lie on 2 MiB pages. But a huge page that is touched once is resident as a whole.
// Hence two ways to them: CollapsePages makes one of small pages that are full already, AdviseHuge
// asks for them beforehand.
#pragma once

#include <cstddef>

namespace cistern {

inline constexpr size_t kSmallPageBytes = 4 << 10;
inline constexpr size_t kHugePageBytes = 2 << 20;

// `bytes` of zeros that start at a multiple of kHugePageBytes, on small pages that become resident
// as they are touched. Stops the process, with a message for its operator, if there is no memory:
// a server that cannot keep a committed row must not go on.
//
// bytes: a multiple of kSmallPageBytes, not zero.
char* MapPages(size_t bytes);
void UnmapPages(char* start, size_t bytes);

// Moves the pages of [start, start + bytes), multiples of kHugePageBytes, onto huge pages. False if
// this kernel cannot (Linux before 6.1, or built without them); true does not promise success.
bool CollapsePages(char* start, size_t bytes);

// Asks for huge pages in [start, start + bytes) when it is touched; only whole ones become huge.
void AdviseHuge(char* start, size_t bytes);

// Has malloc give free pages back to the system, where it can.
void ReturnFreedMemory();

}  // namespace cistern
