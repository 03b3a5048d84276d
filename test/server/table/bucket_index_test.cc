#include "server/table/bucket_index.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <set>
#include <vector>

#include "common/base/hash.h"

namespace cistern::server {
namespace {

// Records as the index reads them: they start with their key.
std::vector<Key> DenseKeys(size_t n, Key step = 1) {
  std::vector<Key> keys(n);
  for (size_t i = 0; i < n; ++i) keys[i] = i * step;
  return keys;
}

const char* RecordOf(const Key& key) {
  return reinterpret_cast<const char*>(&key);
}

// Whether the index finds exactly `keys`, each at its own record.
void ExpectFinds(const BucketIndex& index, const std::vector<Key>& keys) {
  ASSERT_EQ(index.size(), keys.size());
  for (const Key& key : keys) {
    const Slot* slot = index.Find(MixKey(key), key);
    ASSERT_NE(slot, nullptr) << key;
    ASSERT_EQ(slot->record(), RecordOf(key)) << key;
    ASSERT_EQ(slot->has_embedx(), key % 3 == 0) << key;
  }
}

TEST(BucketIndex, EmptyIndexFindsNothing) {
  Arena arena;
  BucketIndex index(&arena);
  for (Key key : DenseKeys(1000)) {
    EXPECT_EQ(index.Find(MixKey(key), key), nullptr);
    EXPECT_TRUE(index.FindTag(MixKey(key)).empty());
  }
  EXPECT_LE(arena.resident_bytes(), 4096u);
}

TEST(BucketIndex, FindsMillionsOfDenseKeysWhileItGrows) {
  // All below 2^58: an unmixed hash would put them into one bucket. The step is a shard number.
  for (Key step : {1, 64}) {
    const std::vector<Key> keys = DenseKeys(1000000, step);
    Arena arena;
    BucketIndex index(&arena);
    for (const Key& key : keys) index.Insert(MixKey(key), RecordOf(key), key % 3 == 0);
    ExpectFinds(index, keys);
    for (size_t i = 0; i < 100000; ++i) {
      const Key absent = keys.size() * step + i;
      ASSERT_EQ(index.Find(MixKey(absent), absent), nullptr);
    }
  }
}

TEST(BucketIndex, StaysWithinItsMemoryPerRow) {
  // Records of 56 bytes, which hold 12 floats: at every moment, each may take (48 + 8) * 1.25 = 70
  // bytes with its share of the index and of the holes that outgrown buckets left.
  Arena arena;
  BucketIndex index(&arena);
  for (Key key = 0; key < 1500000; ++key) {
    char* record = arena.Allocate(56);
    std::memset(record, 0, 56);
    std::memcpy(record, &key, sizeof(key));
    index.Insert(MixKey(key), record, false);
    if (key >= 20000 && key % 1000 == 0) {
      const double rows = static_cast<double>(index.size());
      ASSERT_LE(static_cast<double>(arena.resident_bytes() + index.own_bytes()), 70.0 * rows)
          << index.size();
      ASSERT_GE(static_cast<double>(index.memory_bytes()), 8 / 0.9 * rows);
      ASSERT_LE(static_cast<double>(index.memory_bytes()), 11.0 * rows);
    }
  }
}

TEST(BucketIndex, ReplacePointsTheKeyToItsNewRecord) {
  const std::vector<Key> old_records = DenseKeys(5000);
  const std::vector<Key> new_records = old_records;
  Arena arena;
  BucketIndex index(&arena);
  for (const Key& key : old_records) index.Insert(MixKey(key), RecordOf(key), false);
  for (const Key& key : new_records) {
    index.Replace(MixKey(key), key, RecordOf(key), key % 3 == 0);
  }
  ExpectFinds(index, new_records);
}

TEST(BucketIndex, PlacesHoldEveryRecordOnce) {
  const std::vector<Key> keys = DenseKeys(12345, 11);
  Arena arena;
  BucketIndex index(&arena);
  for (const Key& key : keys) index.Insert(MixKey(key), RecordOf(key), false);
  std::multiset<Key> seen;
  for (size_t b = 0; b < BucketIndex::kBucketNum; ++b) {
    for (size_t place = 0; place < index.slot_num(b); ++place) {
      const Slot slot = index.slot(b, place);
      if (slot.empty()) continue;
      seen.insert(slot.key());
      EXPECT_EQ(MixKey(slot.key()) >> 58, b);
    }
  }
  EXPECT_EQ(seen, std::multiset<Key>(keys.begin(), keys.end()));
}

// The inverse of MixKey, to make keys with chosen hashes: undoes each step of splitmix64.
Key UnmixKey(uint64_t x) {
  const auto inverse = [](uint64_t a) {  // modulo 2^64, by Newton's iteration
    uint64_t y = a;
    for (int i = 0; i < 6; ++i) y *= 2 - a * y;
    return y;
  };
  const auto unshift = [](uint64_t y, int shift) {
    uint64_t z = y;
    for (int i = 0; i < 64 / shift; ++i) z = y ^ (z >> shift);
    return z;
  };
  x = unshift(x, 31) * inverse(0x94d049bb133111ebull);
  x = unshift(x, 27) * inverse(0xbf58476d1ce4e5b9ull);
  return unshift(x, 30) - 0x9e3779b97f4a7c15ull;
}

TEST(BucketIndex, DistinguishesKeysWithOneTag) {
  // 300 keys with one bucket and one tag, the last tag, so that their cluster reaches the end; and
  // keys with the tags around it.
  std::vector<Key> keys;
  for (uint64_t low = 0; low < 300; ++low) {
    keys.push_back(UnmixKey(uint64_t{5} << 58 | uint64_t{0x7FFFF} << 39 | low));
    ASSERT_EQ(MixKey(keys.back()) >> 39, (uint64_t{5} << 19) + 0x7FFFF);
  }
  for (uint64_t tag : {0, 1, 2, 0x7FFFE, 0x7FFFD, 0x70000}) {
    keys.push_back(UnmixKey(uint64_t{5} << 58 | tag << 39));
  }
  Arena arena;
  BucketIndex index(&arena);
  for (const Key& key : keys) index.Insert(MixKey(key), RecordOf(key), key % 3 == 0);
  ExpectFinds(index, keys);
  const Key absent = UnmixKey(uint64_t{5} << 58 | uint64_t{0x7FFFF} << 39 | 1000);
  EXPECT_EQ(index.Find(MixKey(absent), absent), nullptr);
  EXPECT_FALSE(index.FindTag(MixKey(absent)).empty());  // same tag: only the record differs
}

// Keys with few tags, so that clusters are long and overlap, including those of the last tags.
TEST(BucketIndex, BehavesAsASetUnderInsertAndErase) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  std::vector<Key> keys;  // their addresses are the records
  for (uint64_t low = 0; low < 40; ++low) {
    for (uint64_t tag = 0; tag < 60; ++tag) {
      const uint64_t near = tag < 20 ? tag : tag < 40 ? 0x7FFFF - tag : tag * 8713;
      keys.push_back(UnmixKey(uint64_t{5} << 58 | near << 39 | low));
    }
  }
  Arena arena;
  BucketIndex index(&arena);
  std::set<const Key*> present;
  for (int round = 0; round < 30; ++round) {
    for (int i = 0; i < 1500; ++i) {
      const Key& key = keys[random() % keys.size()];
      const bool insert = random() % 10 < (round % 2 == 0 ? 8u : 2u);
      if (insert && present.insert(&key).second) {
        index.Insert(MixKey(key), RecordOf(key), key % 3 == 0);
      } else if (!insert && present.erase(&key) == 1) {
        index.Erase(MixKey(key), key);
      }
    }
    ASSERT_EQ(index.size(), present.size());
    for (const Key& key : keys) {
      const Slot* slot = index.Find(MixKey(key), key);
      ASSERT_EQ(slot != nullptr, present.count(&key) == 1) << "round " << round;
      if (slot != nullptr) {
        ASSERT_EQ(slot->record(), RecordOf(key));
      }
    }
  }
}

TEST(BucketIndex, ErasedPlacesHoldTheNextSlot) {
  const std::vector<Key> keys = DenseKeys(20000, 7);
  Arena arena;
  BucketIndex index(&arena);
  for (const Key& key : keys) index.Insert(MixKey(key), RecordOf(key), key % 3 == 0);
  std::multiset<Key> seen;
  for (size_t b = 0; b < BucketIndex::kBucketNum; ++b) {
    for (size_t place = 0; place < index.slot_num(b);) {
      const Slot slot = index.slot(b, place);
      if (!slot.empty()) seen.insert(slot.key());
      if (!slot.empty() && slot.key() % 2 == 0) {
        index.EraseAt(b, place);
      } else {
        ++place;
      }
    }
  }
  EXPECT_EQ(seen, std::multiset<Key>(keys.begin(), keys.end()));
  EXPECT_EQ(index.size(), keys.size() / 2);
  for (const Key& key : keys) {
    ASSERT_EQ(index.Find(MixKey(key), key) != nullptr, key % 2 == 1) << key;
  }
}

}  // namespace
}  // namespace cistern::server
