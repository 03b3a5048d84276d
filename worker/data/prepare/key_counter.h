// Counts the distinct keys of a stream and finds the frequent ones, in bounded memory.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "common/base/types.h"

namespace cistern::data {

// Exact up to `exact_max` distinct keys. Beyond that, HyperLogLog estimates the number (Flajolet et
// al. 2007; 2^14 registers, standard error 0.8 %), and only the keys met before are counted.
// Frequent keys usually are among these.
//
// Threads: one at a time.
class KeyCounter {
 public:
  explicit KeyCounter(size_t exact_max = size_t{1} << 16) : exact_max_(exact_max) {}

  void Add(Key key);

  bool exact() const { return registers_.empty(); }
  uint64_t Distinct() const;
  // The `n` most frequent keys and their counts, most frequent first; ties by key.
  std::vector<std::pair<Key, uint64_t>> Top(size_t n) const;

 private:
  void Register(Key key);

  size_t exact_max_;
  absl::flat_hash_map<Key, uint64_t> counts_;
  std::vector<uint8_t> registers_;  // empty while exact
};

}  // namespace cistern::data
