// The distinct keys of one input of a pass, and the row of each.
#pragma once

#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "common/base/types.h"
#include "worker/data/source/key_index.h"

namespace cistern {

// Row r of the pass table holds the value of keys()[r]. Rows go by the order in which keys came
// where the host found them (KeyIndex), by the order of mixed keys (common/base/hash.h) where the
// device did (DeviceKeys).
//
// Threads: any.
class PassKeys {
 public:
  static constexpr Row kNone = KeyIndex::kNone;

  PassKeys() = default;
  explicit PassKeys(KeyIndex index) : index_(std::move(index)) {}
  // keys: ascending by their mixed keys, none twice.
  static PassKeys Ordered(std::vector<Key> keys);

  size_t size() const { return keys().size(); }
  absl::Span<const Key> keys() const { return is_ordered_ ? ordered_ : index_.keys(); }

  // rows[i] = the row of wanted[i], or kNone. In ordered keys those that come in the same order are
  // found by walking along.
  void Find(absl::Span<const Key> wanted, Row* rows) const;

 private:
  bool is_ordered_ = false;
  KeyIndex index_;
  std::vector<Key> ordered_;
};

// Rows of `keys` that `others` holds too, and there; and the rows of `keys` that it does not.
struct SharedRows {
  std::vector<Row> here, there, missing;
};
SharedRows FindShared(const PassKeys& keys, const PassKeys& others);

}  // namespace cistern
