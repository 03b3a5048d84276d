// The index of a shard's records: 64 closed hash maps, the buckets.
//
// A slot is 8 bytes. It holds no key, because the record does:
//
//   bits 63..45  tag: the 19 bits of the mixed key after the 6 that choose the bucket
//        44      has_embedx: whether the value holds its embedx
//        43..0   address of the record / 8; an empty slot is all zeros
//
// A bucket keeps its slots sorted by tag, largest first. The home of a slot is its tag's share of
// the capacity. The slot is at home or a little after it, where slots with larger tags push it, at
// a load of up to 0.9 (linear probing sort; Gonnet and Munro 1984). A search counts how many of the
// 8 slots from home on have a larger tag, and the count is the answer: no branch to mispredict,
// even for absent keys. Because the home follows from the tag alone, growing reads no record. The
// price: the tag adds no information to the position, so in a bucket of n rows n / 2^19 of the
// searches meet a wrong record.
//
// A bucket grows by a quarter, and the 64 buckets grow at different moments. The index therefore
// always costs about 10 bytes a row, no insert waits for more than 1/64 of it, and records soon
// fill the small holes that outgrown buckets leave in the arena.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "common/base/types.h"
#include "server/table/arena.h"

namespace cistern::server {

// The address, tag and state of one record. Plain data.
class Slot {
 public:
  static constexpr int kTagBits = 19;
  static constexpr int kTagShift = 64 - kTagBits;

  Slot() = default;
  Slot(const char* record, bool has_embedx)
      : word_((reinterpret_cast<uint64_t>(record) >> 3) | uint64_t{has_embedx} << kEmbedxShift) {}

  bool empty() const { return word_ == 0; }
  bool has_embedx() const { return (word_ >> kEmbedxShift & 1) != 0; }
  uint64_t tag() const { return word_ >> kTagShift; }
  char* record() const {
    return reinterpret_cast<char*>((word_ & ((uint64_t{1} << kEmbedxShift) - 1)) << 3);
  }
  // Whether its tag is larger than `tag`; false for an empty slot.
  bool Above(uint64_t tag) const {
    return word_ > (tag << kTagShift | ((uint64_t{1} << kTagShift) - 1));
  }
  Slot WithTag(uint64_t tag) const {
    Slot slot;
    slot.word_ = (word_ & ~(~uint64_t{0} << kTagShift)) | tag << kTagShift;
    return slot;
  }
  // The key at the start of its record.
  Key key() const {
    Key key;
    std::memcpy(&key, record(), sizeof(key));
    return key;
  }

 private:
  static constexpr int kEmbedxShift = 44;
  uint64_t word_ = 0;
};
static_assert(sizeof(Slot) == 8);

// The 64 buckets of a shard. `hash` is always MixKey(key). Records belong to the caller.
//
// Threads: const methods from any thread while no thread writes.
class BucketIndex {
 public:
  static constexpr int kBucketBits = 6;
  static constexpr size_t kBucketNum = size_t{1} << kBucketBits;

  // arena: the one that holds the shard's records; outlives this. Very large buckets have their own
  // pages.
  explicit BucketIndex(Arena* arena);
  ~BucketIndex();
  BucketIndex(const BucketIndex&) = delete;
  BucketIndex& operator=(const BucketIndex&) = delete;

  size_t size() const { return size_; }
  // Bytes of all slots, and of the slots outside the arena.
  size_t memory_bytes() const { return memory_bytes_; }
  size_t own_bytes() const { return own_bytes_; }

  // Prefetches the cache lines where a search starts and, most often, ends.
  void Prefetch(uint64_t hash) const {
    const Bucket& bucket = buckets_[BucketOf(hash)];
    const Slot* home = bucket.slots + bucket.Home(Tag(hash));
    __builtin_prefetch(home);
    __builtin_prefetch(home + kWindow - 1);
  }

  // The first slot with the tag of `hash`; empty if there is none. Reads no record: the caller
  // compares the key and calls Find if it differs.
  Slot FindTag(uint64_t hash) const {
    const Bucket& bucket = buckets_[BucketOf(hash)];
    const uint64_t tag = Tag(hash);
    const Slot slot = bucket.slots[bucket.PlaceOf(tag)];
    return slot.tag() == tag ? slot : Slot();
  }

  // The slot of `key`, nullptr if absent.
  const Slot* Find(uint64_t hash, Key key) const {
    const Bucket& bucket = buckets_[BucketOf(hash)];
    const uint64_t tag = Tag(hash);
    const Slot* slot = bucket.slots + bucket.PlaceOf(tag);
    for (; !slot->empty() && slot->tag() == tag; ++slot) {
      if (slot->key() == key) return slot;
    }
    return nullptr;
  }

  // Makes the slot of `key`, which must be present, point to another record.
  void Replace(uint64_t hash, Key key, const char* record, bool has_embedx);

  // Adds a key, which must be absent. May move the slots of its bucket.
  void Insert(uint64_t hash, const char* record, bool has_embedx);

  // Sizes the buckets of an empty index for `rows` rows, as that many Inserts would; buckets that
  // get more than their share still grow. Saves work only: behaviour does not change.
  void Expect(size_t rows);

  // Removes `key`, which must be present; the caller still owns its record. The slots after it that
  // are not at home move up by one. No slot between a home and its slot is ever empty, as a search
  // requires, and no tombstone is needed. A bucket never shrinks.
  void Erase(uint64_t hash, Key key);
  // The same for the slot at `place`, which must not be empty. Afterwards `place` holds the next
  // slot to visit.
  void EraseAt(size_t bucket, size_t place);

  // The slots of a bucket by place, for scans; some are empty.
  size_t slot_num(size_t bucket) const { return buckets_[bucket].slot_num; }
  Slot slot(size_t bucket, size_t place) const { return buckets_[bucket].slots[place]; }

 private:
  static constexpr size_t kWindow = 8;  // slots that a search compares at once: one cache line
  static constexpr uint64_t kMaxTag = (uint64_t{1} << Slot::kTagBits) - 1;

  static bool IsFull(uint64_t rows, uint64_t capacity) { return rows * 10 + 10 > capacity * 9; }

  struct Bucket {
    Slot* slots = nullptr;
    uint32_t slot_num = 0;
    uint32_t capacity = 0;  // homes; the other slots take the overflow of the last homes
    uint32_t rows = 0;

    size_t bytes() const { return size_t{slot_num} * sizeof(Slot); }
    bool full() const { return IsFull(rows, capacity); }
    // Slots that may be filled. The last kWindow stay empty, so every search ends inside the array.
    size_t place_num() const { return slot_num - kWindow; }
    size_t Home(uint64_t tag) const { return (kMaxTag - tag) * capacity >> Slot::kTagBits; }

    // The first place at or after the home of `tag` whose slot is empty or has no larger tag.
    size_t PlaceOf(uint64_t tag) const {
      for (size_t place = Home(tag);; place += kWindow) {
        size_t above = 0;  // slots are sorted, so these come first
        for (size_t i = 0; i < kWindow; ++i) above += slots[place + i].Above(tag);
        if (above < kWindow) return place + above;
      }
    }
    // Inserts a slot at its place. Returns false, and changes nothing, if the last places are
    // taken.
    bool Add(Slot slot);
    // Removes the slot at `place`.
    void Remove(size_t place);
    // Copies the slots of `old` into this empty bucket; false if the last places do not suffice.
    bool Fill(const Bucket& old);
  };

  static size_t BucketOf(uint64_t hash) { return hash >> (64 - kBucketBits); }
  static uint64_t Tag(uint64_t hash) { return hash << kBucketBits >> Slot::kTagShift; }
  static size_t NextSlotNum(size_t b, size_t slot_num);

  Bucket Allocate(size_t slot_num, size_t capacity);
  void Free(const Bucket& bucket);
  void Grow(size_t b);
  static size_t CapacityOf(size_t slot_num);

  Arena* const arena_;
  std::array<Bucket, kBucketNum> buckets_;
  size_t size_ = 0;
  size_t memory_bytes_ = 0;
  size_t own_bytes_ = 0;
};

}  // namespace cistern::server
