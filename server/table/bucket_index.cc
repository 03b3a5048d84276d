#include "server/table/bucket_index.h"

#include <algorithm>
#include <utility>

#include "common/check.h"
#include "server/table/pages.h"

namespace cistern {
namespace {

constexpr size_t kFirstCapacity = 8;  // 64 buckets of 8 slots: one small page
// From here on whole huge pages cost at most a third more than the slots on them.
constexpr size_t kWholeHugePages = 6 << 20;

size_t RoundUp(size_t n, size_t unit) {
  return (n + unit - 1) / unit * unit;
}

}  // namespace

BucketIndex::BucketIndex() {
  Allocate(kFirstCapacity);
}

BucketIndex::~BucketIndex() {
  UnmapPages(reinterpret_cast<char*>(slots_), bytes_);
}

void BucketIndex::Replace(uint64_t hash, Key key, const char* record, bool full) {
  const Slot* slot = Find(hash, key);
  CISTERN_CHECK(slot != nullptr);
  slots_[slot - slots_] = Slot(record, full).WithTag(Tag(hash));
}

void BucketIndex::Insert(uint64_t hash, const char* record, bool full) {
  // Slots keep 47 bits of an address: all that x86-64 gives a process.
  CISTERN_CHECK(reinterpret_cast<uint64_t>(record) >> 47 == 0);
  size_t& rows = rows_[BucketOf(hash)];
  while (rows >= max_rows_) Grow();
  ++rows;
  ++size_;
  Place(Bucket(hash), Slot(record, full).WithTag(Tag(hash)));
}

void BucketIndex::Allocate(size_t capacity) {
  constexpr size_t kBytesPerCapacity = kBucketNum * sizeof(Slot);
  const size_t unit =
      capacity * kBytesPerCapacity >= kWholeHugePages ? kHugePageBytes : kSmallPageBytes;
  bytes_ = RoundUp(capacity * kBytesPerCapacity, unit);
  capacity_ = bytes_ / kBytesPerCapacity;
  max_rows_ = capacity_ * 9 / 10;
  char* memory = MapPages(bytes_);
  if (bytes_ >= kHugePageBytes) AdviseHuge(memory, bytes_ / kHugePageBytes * kHugePageBytes);
  slots_ = reinterpret_cast<Slot*>(memory);
}

void BucketIndex::Grow() {
  Slot* old_slots = slots_;
  const size_t old_capacity = capacity_, old_bytes = bytes_;
  Allocate(old_capacity + std::max(old_capacity / 4, kFirstCapacity));
  for (size_t bucket = 0; bucket < kBucketNum; ++bucket) {
    const Slot* from = old_slots + bucket * old_capacity;
    for (size_t place = 0; place < old_capacity; ++place) {
      if (!from[place].empty()) Place(slots_ + bucket * capacity_, from[place]);
    }
  }
  UnmapPages(reinterpret_cast<char*>(old_slots), old_bytes);
}

// Robin Hood: whoever is further from home takes the place, and the other one moves on.
void BucketIndex::Place(Slot* bucket, Slot slot) {
  size_t place = Home(slot.tag());
  for (size_t distance = 0; !bucket[place].empty(); ++distance) {
    const size_t other = Distance(place, bucket[place]);
    if (other < distance) {
      std::swap(bucket[place], slot);
      distance = other;
    }
    if (++place == capacity_) place = 0;
  }
  bucket[place] = slot;
}

}  // namespace cistern
