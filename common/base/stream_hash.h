// The 64-bit XXH3 of bytes that arrive piece by piece; the same as HashBytes of all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/strings/string_view.h"

namespace cistern {

// Threads: one at a time.
class StreamHash {
 public:
  explicit StreamHash(uint64_t seed = 0);
  ~StreamHash();

  void Add(const void* data, size_t size);
  void Add(absl::string_view bytes) { Add(bytes.data(), bytes.size()); }
  // Of the bytes so far.
  uint64_t value() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cistern
