// The distinct keys of one input of a pass, and their rows.
#pragma once

#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "common/base/types.h"
#include "worker/data/source/key_index.h"

namespace cistern::data {

// Row r of the pass table holds the value of keys()[r]. If the host collected the keys (KeyIndex),
// rows are in the order of first occurrence. If the device did (DeviceKeys), rows are in the order
// of mixed keys (common/base/hash.h).
//
// Threads: any.
class PassKeys {
 public:
  static constexpr Row kNone = KeyIndex::kNone;

  PassKeys() = default;
  explicit PassKeys(KeyIndex index) : index_(std::move(index)) {}
  // keys: distinct, ascending by mixed key.
  static PassKeys Ordered(std::vector<Key> keys);

  size_t size() const { return keys().size(); }
  absl::Span<const Key> keys() const { return is_ordered_ ? ordered_ : index_.keys(); }

  // Sets rows[i] to the row of wanted[i], or kNone. Fast for Ordered keys if `wanted` is in the
  // same order: the search then only moves forward.
  void Find(absl::Span<const Key> wanted, Row* rows) const;

 private:
  void FindOrdered(absl::Span<const Key> wanted, Row* rows) const;

  bool is_ordered_ = false;
  KeyIndex index_;
  std::vector<Key> ordered_;
};

// The rows of keys in both `keys` (here) and `others` (there), and the rows of keys only in `keys`.
struct SharedRows {
  std::vector<Row> here, there, missing;
};
SharedRows FindShared(const PassKeys& keys, const PassKeys& others);

}  // namespace cistern::data
