#include "server/commit/duplicate_check.h"

#include "common/base/hash.h"

namespace cistern {
namespace {

// A set for a known number of keys: open addressing with a load of at most one half. kReservedKey64
// marks an empty place, since pushes with that key are refused.
class KeySet {
 public:
  explicit KeySet(size_t key_num) {
    while ((size_t{1} << bits_) < 2 * key_num) ++bits_;
    places_.assign(size_t{1} << bits_, kReservedKey64);
  }

  void Prefetch(Key key) const { __builtin_prefetch(&places_[Home(key)], 1); }

  // Returns false if the key is already present.
  bool Add(Key key) {
    size_t place = Home(key);
    while (places_[place] != kReservedKey64) {
      if (places_[place] == key) return false;
      place = (place + 1) & (places_.size() - 1);
    }
    places_[place] = key;
    return true;
  }

 private:
  size_t Home(Key key) const { return MixKey(key) >> (64 - bits_); }

  int bits_ = 1;
  std::vector<Key> places_;
};

absl::optional<Key> FindInShard(absl::Span<const ValueBlock> blocks,
                                absl::Span<const KeyRange> ranges) {
  constexpr uint32_t kAhead = 16;
  size_t key_num = 0;
  for (const KeyRange& range : ranges) key_num += range.end - range.begin;
  KeySet seen(key_num);
  for (const KeyRange& range : ranges) {
    const absl::Span<const Key> keys = blocks[range.block].keys;
    for (uint32_t i = range.begin; i < range.end; ++i) {
      if (range.end - i > kAhead) seen.Prefetch(keys[i + kAhead]);
      if (!seen.Add(keys[i])) return keys[i];
    }
  }
  return absl::nullopt;
}

}  // namespace

absl::optional<Key> FindDuplicateKey(const ShardMap& map, uint32_t local_shard_num,
                                     absl::Span<const ValueBlock> blocks, ThreadPool& pool) {
  const auto ranges = RangesByShard(map, local_shard_num, blocks);
  std::vector<absl::optional<Key>> found(local_shard_num);
  pool.ParallelFor(local_shard_num,
                   [&](size_t local) { found[local] = FindInShard(blocks, ranges[local]); });
  for (const absl::optional<Key>& key : found) {
    if (key.has_value()) return key;
  }
  return absl::nullopt;
}

}  // namespace cistern
