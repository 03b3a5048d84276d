// Maps the distinct keys of a pass to rows: row r is the r-th distinct key added, from 0.
#pragma once

#include <cstddef>

#include "absl/types/span.h"
#include "common/base/pages.h"
#include "common/base/types.h"

namespace cistern::data {

// A hash table with open addressing. Its entries are 32-bit rows; keys are compared in keys_.
//
// Threads: Find may be called from any thread while no other method runs.
class KeyIndex {
 public:
  // Makes room for `size` keys, so that adding them moves nothing. Only an empty index.
  void Expect(size_t size);
  // Returns the row of `key`. Adds the key if it is new.
  Row Add(Key key);
  // The same for many keys, with prefetching: sets rows[i] to the row of keys[i].
  void Add(absl::Span<const Key> keys, Row* rows);
  // Returns the row of `key`, or kNone.
  Row Find(Key key) const;
  // The same for many keys, with prefetching: sets rows[i] to the row of keys[i], or kNone.
  void Find(absl::Span<const Key> keys, Row* rows) const;
  static constexpr Row kNone = ~Row{0};

  // Removes the last added keys, so that `size` remain.
  void Truncate(size_t size);

  size_t size() const { return keys_.size(); }
  absl::Span<const Key> keys() const { return keys_; }

 private:
  // Ensures that `more` keys can be added without a rehash.
  void Reserve(size_t more);
  // The index of `key` in slots_, or of the empty entry for it; LocateFrom searches from `place`,
  // where the key's hash is.
  size_t Locate(Key key) const;
  size_t LocateFrom(size_t place, Key key) const;
  // Calls use(i, the index in slots_ where the hash of key i is) for each key, in order. By then
  // the memory that the search reads first has been prefetched.
  template <typename Use>
  void Visit(absl::Span<const Key> keys, Use use) const;
  // Add of a key whose hash is at `place`, with room reserved.
  Row AddAt(size_t place, Key key);

  HugePageVector<Key> keys_;
  HugePageVector<Row> slots_;  // kNone = empty; size a power of two
};

}  // namespace cistern::data
