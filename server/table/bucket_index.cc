#include "server/table/bucket_index.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/base/check.h"
#include "common/base/pages.h"

namespace cistern::server {
namespace {

// Above this size, a bucket's own huge pages cost at most a third more than its slots.
constexpr size_t kMaxArenaBytes = 6 << 20;
// The maximum initial number of places after the last home.
constexpr size_t kOverflow = 16;

// The slots that a bucket without rows searches. Never written.
alignas(64) Slot no_slots[8];

size_t RoundUp(size_t n, size_t unit) {
  return (n + unit - 1) / unit * unit;
}

bool HasOwnPages(size_t bytes) {
  return bytes > kMaxArenaBytes;
}

}  // namespace

BucketIndex::BucketIndex(Arena* arena) : arena_(arena) {
  static_assert(sizeof(no_slots) == kWindow * sizeof(Slot));
  for (Bucket& bucket : buckets_) {
    bucket.slots = no_slots;
    bucket.slot_num = kWindow;
  }
}

BucketIndex::~BucketIndex() {
  for (const Bucket& bucket : buckets_) Free(bucket);
}

void BucketIndex::Replace(uint64_t hash, Key key, const char* record, bool has_embedx) {
  const Slot* slot = Find(hash, key);
  CISTERN_CHECK(slot != nullptr);
  Slot* slots = buckets_[BucketOf(hash)].slots;
  slots[slot - slots] = Slot(record, has_embedx).WithTag(Tag(hash));
}

void BucketIndex::Insert(uint64_t hash, const char* record, bool has_embedx) {
  // Slots keep 47 bits of an address, all that a user process has on x86-64.
  CISTERN_CHECK(reinterpret_cast<uint64_t>(record) >> 47 == 0);
  const size_t b = BucketOf(hash);
  const Slot slot = Slot(record, has_embedx).WithTag(Tag(hash));
  while (buckets_[b].full() || !buckets_[b].Add(slot)) Grow(b);
  ++buckets_[b].rows;
  ++size_;
}

void BucketIndex::Erase(uint64_t hash, Key key) {
  const Slot* slot = Find(hash, key);
  CISTERN_CHECK(slot != nullptr);
  const size_t b = BucketOf(hash);
  EraseAt(b, static_cast<size_t>(slot - buckets_[b].slots));
}

void BucketIndex::EraseAt(size_t bucket, size_t place) {
  CISTERN_CHECK(!buckets_[bucket].slots[place].empty());
  buckets_[bucket].Remove(place);
  --buckets_[bucket].rows;
  --size_;
}

// Sizes follow the series 16 * 1.25^(b / 64 + i), i = 0, 1 ... The buckets of a shard have about
// the same number of rows, so the b / 64 gives each its own phase.
size_t BucketIndex::NextSlotNum(size_t b, size_t slot_num) {
  double next = 2 * kWindow * std::pow(1.25, static_cast<double>(b) / kBucketNum);
  while (next < static_cast<double>(slot_num + kWindow)) next *= 1.25;
  const size_t slots = RoundUp(static_cast<size_t>(next), kWindow);
  if (!HasOwnPages(slots * sizeof(Slot))) return slots;
  return RoundUp(slots * sizeof(Slot), kHugePageBytes) / sizeof(Slot);
}

BucketIndex::Bucket BucketIndex::Allocate(size_t slot_num, size_t capacity) {
  CISTERN_CHECK(slot_num <= UINT32_MAX);
  Bucket bucket;
  bucket.slot_num = static_cast<uint32_t>(slot_num);
  bucket.capacity = static_cast<uint32_t>(capacity);
  const size_t bytes = bucket.bytes();
  memory_bytes_ += bytes;
  if (HasOwnPages(bytes)) {
    own_bytes_ += bytes;
    bucket.slots = reinterpret_cast<Slot*>(MapPages(RoundUp(bytes, kSmallPageBytes)));
    AdviseHuge(reinterpret_cast<char*>(bucket.slots), bytes);
  } else {
    char* memory = arena_->AllocateLarge(bytes);
    std::memset(memory, 0, bytes);
    bucket.slots = reinterpret_cast<Slot*>(memory);
  }
  return bucket;
}

void BucketIndex::Free(const Bucket& bucket) {
  if (bucket.slots == no_slots) return;
  const size_t bytes = bucket.bytes();
  memory_bytes_ -= bytes;
  if (HasOwnPages(bytes)) {
    own_bytes_ -= bytes;
    UnmapPages(reinterpret_cast<char*>(bucket.slots), RoundUp(bytes, kSmallPageBytes));
  } else {
    arena_->ReleaseLarge(reinterpret_cast<char*>(bucket.slots), bytes);
  }
}

// The initial number of homes of a bucket with `slot_num` slots.
size_t BucketIndex::CapacityOf(size_t slot_num) {
  return slot_num - kWindow - std::min(slot_num / 8, kOverflow);
}

void BucketIndex::Expect(size_t rows) {
  CISTERN_CHECK(size_ == 0);
  for (size_t b = 0; b < kBucketNum && rows >= kBucketNum; ++b) {
    size_t slot_num = NextSlotNum(b, 0);
    while (IsFull(rows / kBucketNum, CapacityOf(slot_num))) slot_num = NextSlotNum(b, slot_num);
    const Bucket bucket = Allocate(slot_num, CapacityOf(slot_num));
    Free(buckets_[b]);
    buckets_[b] = bucket;
  }
}

void BucketIndex::Grow(size_t b) {
  const Bucket old = buckets_[b];
  size_t slot_num = old.slot_num, capacity = old.capacity;
  const auto add_overflow = [&] { slot_num += RoundUp(slot_num - capacity, kWindow); };
  if (old.full()) {
    slot_num = NextSlotNum(b, slot_num);
    capacity = CapacityOf(slot_num);
  } else {
    add_overflow();  // the bucket has room, but many homes are at the end
  }
  Bucket bucket = Allocate(slot_num, capacity);
  while (!bucket.Fill(old)) {
    Free(bucket);
    add_overflow();
    bucket = Allocate(slot_num, capacity);
  }
  Free(old);
  buckets_[b] = bucket;
}

bool BucketIndex::Bucket::Add(Slot slot) {
  const size_t place = PlaceOf(slot.tag());
  size_t end = place;
  while (!slots[end].empty()) ++end;
  if (end >= place_num()) return false;
  std::copy_backward(slots + place, slots + end, slots + end + 1);
  slots[place] = slot;
  return true;
}

void BucketIndex::Bucket::Remove(size_t place) {
  // The last kWindow slots are empty, so the run ends before them.
  for (; !slots[place + 1].empty() && Home(slots[place + 1].tag()) <= place; ++place) {
    slots[place] = slots[place + 1];
  }
  slots[place] = Slot();
}

bool BucketIndex::Bucket::Fill(const Bucket& old) {
  size_t next = 0;
  for (size_t i = 0; i < old.slot_num; ++i) {
    const Slot slot = old.slots[i];
    if (slot.empty()) continue;
    const size_t place = std::max(next, Home(slot.tag()));
    if (place >= place_num()) return false;
    slots[place] = slot;
    next = place + 1;
  }
  rows = old.rows;
  return true;
}

}  // namespace cistern::server
