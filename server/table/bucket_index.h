// Where a shard's records are: 64 closed hash maps, the buckets.
//
// A slot is 8 bytes and holds no key (the record does):
//
//   bits 63..45  tag: 19 bits of the mixed key behind the 6 that choose the bucket
//        44      whether the value is full (holds its embedx)
//        43..0   address of the record / 8; a slot of zeros is empty
//
// A bucket keeps its slots sorted by tag, largest first. A slot's home is its tag's share of the
// capacity, and it lies there or, behind its elders, a little further on, at a load of up to 0.9 (a
// linear probing sort; Gonnet and Munro 1984). So a search counts how many of the 8 slots from home
// on have a larger tag and is there: no branch to mispredict, for absent keys either. And since the
// home follows from the tag alone, growing reads no record. The price: tags say nothing that the
// place does not say, so a bucket of n rows shows a wrong record to n / 2^19 of the searches.
//
// A bucket grows by a quarter, each of the 64 at another moment: so the index always costs about 10
// bytes a row, no insert waits for more than a 64th of it, and records soon fill the small holes
// that outgrown buckets leave in the arena.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "common/base/types.h"
#include "server/table/arena.h"

namespace cistern {

// What a slot says. Plain data.
class Slot {
 public:
  static constexpr int kTagBits = 19;
  static constexpr int kTagShift = 64 - kTagBits;

  Slot() = default;
  Slot(const char* record, bool full)
      : word_((reinterpret_cast<uint64_t>(record) >> 3) | uint64_t{full} << kFullShift) {}

  bool empty() const { return word_ == 0; }
  bool full() const { return (word_ >> kFullShift & 1) != 0; }
  uint64_t tag() const { return word_ >> kTagShift; }
  char* record() const {
    return reinterpret_cast<char*>((word_ & ((uint64_t{1} << kFullShift) - 1)) << 3);
  }
  // Whether its tag is larger than `tag`; false if it is empty.
  bool Above(uint64_t tag) const {
    return word_ > (tag << kTagShift | ((uint64_t{1} << kTagShift) - 1));
  }
  Slot WithTag(uint64_t tag) const {
    Slot slot;
    slot.word_ = (word_ & ~(~uint64_t{0} << kTagShift)) | tag << kTagShift;
    return slot;
  }
  // The key that its record starts with.
  Key key() const {
    Key key;
    std::memcpy(&key, record(), sizeof(key));
    return key;
  }

 private:
  static constexpr int kFullShift = 44;
  uint64_t word_ = 0;
};
static_assert(sizeof(Slot) == 8);

// `hash` is everywhere MixKey(key). Records belong to the caller.
//
// Threads: const methods from any thread while none writes.
class BucketIndex {
 public:
  static constexpr int kBucketBits = 6;
  static constexpr size_t kBucketNum = size_t{1} << kBucketBits;

  // arena: of the shard's records; outlives this. Very large buckets have pages of their own.
  explicit BucketIndex(Arena* arena);
  ~BucketIndex();
  BucketIndex(const BucketIndex&) = delete;
  BucketIndex& operator=(const BucketIndex&) = delete;

  size_t size() const { return size_; }
  // Bytes of all slots, and of those that do not lie in the arena.
  size_t memory_bytes() const { return memory_bytes_; }
  size_t own_bytes() const { return own_bytes_; }

  // Asks the processor for the lines where a search starts and, most often, ends.
  void Prefetch(uint64_t hash) const {
    const Bucket& bucket = buckets_[BucketOf(hash)];
    const Slot* home = bucket.slots + bucket.Home(Tag(hash));
    __builtin_prefetch(home);
    __builtin_prefetch(home + kWindow - 1);
  }

  // The first slot with the tag of `hash`, empty if there is none. Reads no record: who asks
  // compares the key, and where it differs asks Find.
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

  // Makes `key`, which has a slot, point to another record.
  void Replace(uint64_t hash, Key key, const char* record, bool full);

  // Adds a key that is absent. May move the slots of its bucket.
  void Insert(uint64_t hash, const char* record, bool full);

  // Of an index without rows: buckets that hold `rows` of them, as many as would be there after so
  // many Inserts (but for those that got more than their share: they grow). For less work only.
  void Expect(size_t rows);

  // Removes `key`, which has a slot; its record stays the caller's. The slots behind it that are
  // not at home move up by one, so what a search relies on (no empty slot between a home and its
  // slot) holds and nothing marks the place. A bucket never gets smaller.
  void Erase(uint64_t hash, Key key);
  // The same for the slot at a place, which is not empty: the next one to look at is there then.
  void EraseAt(size_t bucket, size_t place);

  // Slots of a bucket by place, for scans; some are empty.
  size_t slot_num(size_t bucket) const { return buckets_[bucket].slot_num; }
  Slot slot(size_t bucket, size_t place) const { return buckets_[bucket].slots[place]; }

 private:
  static constexpr size_t kWindow = 8;  // slots that a search looks at together: a line's worth
  static constexpr uint64_t kMaxTag = (uint64_t{1} << Slot::kTagBits) - 1;

  static bool IsFull(uint64_t rows, uint64_t capacity) { return rows * 10 + 10 > capacity * 9; }

  struct Bucket {
    Slot* slots = nullptr;
    uint32_t slot_num = 0;
    uint32_t capacity = 0;  // homes; the other slots take what the last homes push out
    uint32_t rows = 0;

    size_t bytes() const { return size_t{slot_num} * sizeof(Slot); }
    bool full() const { return IsFull(rows, capacity); }
    // Slots that may be filled: the last kWindow stay empty, so that every search ends inside.
    size_t place_num() const { return slot_num - kWindow; }
    size_t Home(uint64_t tag) const { return (kMaxTag - tag) * capacity >> Slot::kTagBits; }

    // The first place from the home of `tag` on whose slot is empty or has no larger tag.
    size_t PlaceOf(uint64_t tag) const {
      for (size_t place = Home(tag);; place += kWindow) {
        size_t above = 0;  // of sorted slots: those in front
        for (size_t i = 0; i < kWindow; ++i) above += slots[place + i].Above(tag);
        if (above < kWindow) return place + above;
      }
    }
    // Puts a slot in its place; false, and nothing is done, if the last places are taken.
    bool Add(Slot slot);
    // Takes out the slot at `place`.
    void Remove(size_t place);
    // Puts the slots of `old` into this empty bucket; false if the last places do not suffice.
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

}  // namespace cistern
