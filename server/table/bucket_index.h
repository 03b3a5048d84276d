// Where a shard's records are: 64 closed hash maps, the buckets, in one allocation.
//
// A slot is 8 bytes and holds no key (the record does):
//
//   bits 63..45  tag: 19 bits of the mixed key behind the 6 that choose the bucket
//        44      whether the value is full (holds its embedx)
//        43..0   address of the record / 8; a slot of zeros is empty
//
// Inside its bucket a slot's home is tag * capacity / 2^19. Collisions probe onward with the Robin
// Hood rule (Celis 1986): the slots of a bucket stay ordered by home, so that a search for an
// absent key ends as early as one for a present key even at the maximum load of 0.9, and, because
// the home follows from the tag alone, growing reads no record. The price: tags say nothing that
// the place does not say, so a bucket of n rows shows a wrong record to n / 2^19 of the searches.
//
// The index costs 8 bytes / load a row: 8.9 just before it grows by a quarter, 11.5 just after.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "common/types.h"

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

  BucketIndex();
  ~BucketIndex();
  BucketIndex(const BucketIndex&) = delete;
  BucketIndex& operator=(const BucketIndex&) = delete;

  size_t size() const { return size_; }
  size_t memory_bytes() const { return bytes_; }

  // Asks the processor for the line where a search starts.
  void Prefetch(uint64_t hash) const { __builtin_prefetch(Bucket(hash) + Home(Tag(hash))); }

  // The first slot with the tag of `hash`, empty if there is none. Reads no record: who asks
  // compares the key, and where it differs asks Find.
  Slot FindTag(uint64_t hash) const {
    const Slot* slot = Search(hash, [](Slot) { return true; });
    return slot == nullptr ? Slot() : *slot;
  }

  // The slot of `key`, nullptr if absent.
  const Slot* Find(uint64_t hash, Key key) const {
    return Search(hash, [key](Slot slot) { return slot.key() == key; });
  }

  // Makes `key`, which has a slot, point to another record.
  void Replace(uint64_t hash, Key key, const char* record, bool full);

  // Adds a key that is absent. May move every slot.
  void Insert(uint64_t hash, const char* record, bool full);

  // Slots by position, for scans: [0, slot_num()), some of them empty.
  size_t slot_num() const { return kBucketNum * capacity_; }
  Slot slot(size_t position) const { return slots_[position]; }

 private:
  static uint64_t BucketOf(uint64_t hash) { return hash >> (64 - kBucketBits); }
  static uint64_t Tag(uint64_t hash) { return hash << kBucketBits >> Slot::kTagShift; }
  Slot* Bucket(uint64_t hash) const { return slots_ + BucketOf(hash) * capacity_; }
  size_t Home(uint64_t tag) const { return tag * capacity_ >> Slot::kTagBits; }
  // How far the slot at `place` of its bucket is from its home.
  size_t Distance(size_t place, Slot slot) const {
    const size_t home = Home(slot.tag());
    return place >= home ? place - home : place + capacity_ - home;
  }

  // The first slot on the path of `hash` with its tag for which match(slot) holds; else nullptr.
  template <typename Match>
  const Slot* Search(uint64_t hash, Match match) const {
    const uint64_t tag = Tag(hash);
    const Slot* bucket = Bucket(hash);
    size_t place = Home(tag);
    for (size_t distance = 0;; ++distance) {
      const Slot slot = bucket[place];
      if (slot.empty()) return nullptr;
      if (slot.tag() == tag) {
        if (match(slot)) return bucket + place;
      } else if (Distance(place, slot) < distance) {
        return nullptr;
      }
      if (++place == capacity_) place = 0;
    }
  }

  void Allocate(size_t capacity);
  void Grow();
  void Place(Slot* bucket, Slot slot);

  Slot* slots_ = nullptr;  // [kBucketNum, capacity_]
  size_t capacity_ = 0;    // slots of a bucket
  size_t max_rows_ = 0;    // rows of a bucket before the index grows
  size_t bytes_ = 0;       // of the allocation
  size_t size_ = 0;
  std::array<size_t, kBucketNum> rows_{};
};

}  // namespace cistern
