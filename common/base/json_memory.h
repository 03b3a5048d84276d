// A memory probe to run before calling a JSON library.
//
// Neither library survives std::bad_alloc: nlohmann's values allocate in their destructors, which
// must not throw, and protobuf's JSON code is not exception safe. Either would end the process.
// Callers therefore probe here first, where the error can still be returned.
#pragma once

#include <cstddef>
#include <memory>

namespace cistern {

// Throws std::bad_alloc unless the memory needed to read or write `text_bytes` of JSON, plus a
// margin, can be allocated. Does not account for concurrent allocations by other threads.
inline void ExpectMemoryForJson(size_t text_bytes) {
  constexpr size_t kBytesOfByte = 32, kLeast = size_t{1} << 18;
  const std::unique_ptr<char[]> room(new char[kLeast + kBytesOfByte * text_bytes]);
  asm volatile("" : : "g"(room.get()) : "memory");  // prevents the elision of the allocation
}

}  // namespace cistern
