#include "worker/data/source/key_index.h"

#include <algorithm>
#include <bit>

#include "common/base/check.h"
#include "common/base/hash.h"

namespace cistern {
namespace {

constexpr size_t kSlotsMin = 64;
// Number of keys to prefetch at once. Fewer gain nothing; with many more, the first cache lines are
// evicted before use.
constexpr size_t kAhead = 32;

}  // namespace

void KeyIndex::Expect(size_t size) {
  CISTERN_CHECK(keys_.empty());
  Reserve(size);
  keys_.reserve(size);
}

Row KeyIndex::Add(Key key) {
  Reserve(1);
  return AddAt(MixKey(key) & (slots_.size() - 1), key);
}

Row KeyIndex::AddAt(size_t place, Key key) {
  place = LocateFrom(place, key);
  if (slots_[place] == kNone) {
    slots_[place] = static_cast<Row>(keys_.size());
    keys_.push_back(key);
  }
  return slots_[place];
}

void KeyIndex::Add(absl::Span<const Key> keys, Row* rows) {
  size_t places[kAhead];
  for (size_t begin = 0; begin < keys.size(); begin += kAhead) {
    const absl::Span<const Key> part = keys.subspan(begin, kAhead);
    Reserve(part.size());
    Prefetch(part, places);
    for (size_t i = 0; i < part.size(); ++i) {
      const Row row = slots_[places[i]];
      // Most keys are known, and found where they belong.
      rows[begin + i] = row != kNone && keys_[row] == part[i] ? row : AddAt(places[i], part[i]);
    }
  }
}

Row KeyIndex::Find(Key key) const {
  return slots_.empty() ? kNone : slots_[Locate(key)];
}

void KeyIndex::Find(absl::Span<const Key> keys, Row* rows) const {
  if (slots_.empty()) {
    std::fill_n(rows, keys.size(), kNone);
    return;
  }
  size_t places[kAhead];
  for (size_t begin = 0; begin < keys.size(); begin += kAhead) {
    const absl::Span<const Key> part = keys.subspan(begin, kAhead);
    Prefetch(part, places);
    for (size_t i = 0; i < part.size(); ++i) {
      rows[begin + i] = slots_[LocateFrom(places[i], part[i])];
    }
  }
}

void KeyIndex::Prefetch(absl::Span<const Key> keys, size_t* places) const {
  const size_t mask = slots_.size() - 1;
  for (size_t i = 0; i < keys.size(); ++i) {
    places[i] = MixKey(keys[i]) & mask;
    __builtin_prefetch(&slots_[places[i]]);
  }
  for (size_t i = 0; i < keys.size(); ++i) {
    const Row row = slots_[places[i]];
    if (row != kNone) __builtin_prefetch(&keys_[row]);
  }
}

// Probing is linear, and a key is stored after all earlier keys of its chain. Removing the newest
// keys first therefore restores the previous table.
void KeyIndex::Truncate(size_t size) {
  CISTERN_CHECK(size <= keys_.size());
  while (keys_.size() > size) {
    slots_[Locate(keys_.back())] = kNone;
    keys_.pop_back();
  }
}

void KeyIndex::Reserve(size_t more) {
  const size_t size = keys_.size() + more;
  if (2 * size <= slots_.size()) return;
  CISTERN_CHECK(size < kNone);
  slots_.assign(std::max(kSlotsMin, std::bit_ceil(2 * size)), kNone);
  for (size_t row = 0; row < keys_.size(); ++row) {
    slots_[Locate(keys_[row])] = static_cast<Row>(row);
  }
}

size_t KeyIndex::Locate(Key key) const {
  return LocateFrom(MixKey(key) & (slots_.size() - 1), key);
}

size_t KeyIndex::LocateFrom(size_t place, Key key) const {
  const size_t mask = slots_.size() - 1;
  while (slots_[place] != kNone && keys_[slots_[place]] != key) place = (place + 1) & mask;
  return place;
}

}  // namespace cistern
