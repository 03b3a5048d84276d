// The distinct keys of a pass, and the row of each: row r belongs to the r-th key that was added.
#pragma once

#include <cstddef>
#include <vector>

#include "absl/types/span.h"
#include "common/base/types.h"

namespace cistern {

// Open addressing on 32-bit rows; keys are checked in the key array.
//
// Threads: Find from any thread while nobody adds.
class KeyIndex {
 public:
  // Returns the row of `key`, adding it if it is new.
  Row Add(Key key);
  // The same for many keys, with their memory fetched ahead: rows[i] is the row of keys[i].
  void Add(absl::Span<const Key> keys, Row* rows);
  // Returns the row of `key`, or kNone.
  Row Find(Key key) const;
  static constexpr Row kNone = ~Row{0};

  // Forgets the keys that were added last, so that `size` remain.
  void Truncate(size_t size);

  size_t size() const { return keys_.size(); }
  absl::Span<const Key> keys() const { return keys_; }

 private:
  // Makes room for `more` keys without another rehash.
  void Reserve(size_t more);
  // Where `key` stands in slots_, or the empty place where it would.
  size_t Locate(Key key) const;

  std::vector<Key> keys_;
  std::vector<Row> slots_;  // kNone = empty; size a power of two
};

}  // namespace cistern
