#include "worker/data/source/key_index.h"

#include <algorithm>
#include <bit>

#include "common/base/check.h"
#include "common/base/hash.h"
#include "common/base/prefetch.h"

namespace cistern::data {
namespace {

constexpr size_t kSlotsMin = 64;
// The number of keys between a prefetch and its use. Of 8, 16, 32 and 64, the fastest.
constexpr size_t kAhead = 64;
// Keys of one Reserve, which assumes that all of them are new.
constexpr size_t kAtOnce = 1024;

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

template <typename Use>
void KeyIndex::Visit(absl::Span<const Key> keys, Use use) const {
  const size_t mask = slots_.size() - 1;
  const Row* const slots = slots_.data();
  StageRing<size_t, kAhead> places;
  const auto find = [&](size_t i) {
    places[i] = MixKey(keys[i]) & mask;
    __builtin_prefetch(slots + places[i]);
  };
  const auto fetch = [&](size_t i) {
    const Row row = slots[places[i]];
    if (row != kNone) __builtin_prefetch(&keys_[row]);
  };
  RunStages<kAhead>(keys.size(), find, fetch, [&](size_t i) { use(i, places[i]); });
}

void KeyIndex::Add(absl::Span<const Key> keys, Row* rows) {
  for (size_t begin = 0; begin < keys.size(); begin += kAtOnce) {
    const absl::Span<const Key> part = keys.subspan(begin, kAtOnce);
    Reserve(part.size());
    Visit(part, [&](size_t i, size_t place) {
      const Row row = slots_[place];
      // Most keys are known, and found where they belong.
      rows[begin + i] = row != kNone && keys_[row] == part[i] ? row : AddAt(place, part[i]);
    });
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
  Visit(keys, [&](size_t i, size_t place) { rows[i] = slots_[LocateFrom(place, keys[i])]; });
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
  const size_t mask = slots_.size() - 1;
  StageRing<size_t, kAhead> places;
  const auto find = [&](size_t row) {
    places[row] = MixKey(keys_[row]) & mask;
    __builtin_prefetch(&slots_[places[row]], 1);
  };
  RunStages<kAhead>(
      keys_.size(), find, [](size_t) {},
      [&](size_t row) {
        size_t place = places[row];
        while (slots_[place] != kNone) place = (place + 1) & mask;  // no key is there twice
        slots_[place] = static_cast<Row>(row);
      });
}

size_t KeyIndex::Locate(Key key) const {
  return LocateFrom(MixKey(key) & (slots_.size() - 1), key);
}

size_t KeyIndex::LocateFrom(size_t place, Key key) const {
  const size_t mask = slots_.size() - 1;
  while (slots_[place] != kNone && keys_[slots_[place]] != key) place = (place + 1) & mask;
  return place;
}

}  // namespace cistern::data
