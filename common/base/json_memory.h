// Memory for the JSON libraries, asked for before they need it.
//
// Neither survives std::bad_alloc: nlohmann's values allocate in their destructors, which may not
// throw, and protobuf's JSON is not exception safe: the process would end. So whoever is about to
// call one asks here first, where the error can still be returned.
#pragma once

#include <cstddef>
#include <memory>

namespace cistern {

// Throws std::bad_alloc unless as much memory can be had as reading or writing `text_bytes` of JSON
// takes, and some more. What other threads take at the same moment is not counted.
inline void ExpectMemoryForJson(size_t text_bytes) {
  constexpr size_t kBytesOfByte = 32, kLeast = size_t{1} << 18;
  const std::unique_ptr<char[]> room(new char[kLeast + kBytesOfByte * text_bytes]);
  asm volatile("" : : "g"(room.get()) : "memory");  // keeps a compiler from leaving it out
}

}  // namespace cistern
