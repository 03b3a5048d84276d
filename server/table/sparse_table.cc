#include "server/table/sparse_table.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/pages.h"
#include "common/value/row_digest.h"

namespace cistern {
namespace {

uint64_t DigestOf(const RowMap& rows, const ValueLayout& layout) {
  RowDigest digest(layout);
  uint64_t sum = 0;
  rows.Scan(0, SIZE_MAX, [&](Key key, const float* value, bool has_embedx) {
    sum += digest(key, value, has_embedx);
  });
  return sum;
}

}  // namespace

absl::StatusOr<std::unique_ptr<SparseTable>> SparseTable::Create(const v1::TableSpec& spec,
                                                                 const ShardMap& map,
                                                                 uint32_t rank) {
  CISTERN_ASSIGN_OR_RETURN(const ValueLayout layout, ValueLayout::Create(spec));
  if (rank >= map.server_num()) {
    return absl::InvalidArgumentError(
        absl::StrCat("server rank ", rank, " of ", map.server_num(), " servers does not exist"));
  }
  return std::unique_ptr<SparseTable>(new SparseTable(spec, layout, map, rank));
}

SparseTable::SparseTable(const v1::TableSpec& spec, const ValueLayout& layout, const ShardMap& map,
                         uint32_t rank)
    : spec_(spec), layout_(layout), map_(map), rank_(rank) {
  for (uint32_t local = 0; local < map_.local_shard_num(rank_); ++local) {
    shards_.push_back(std::make_unique<Shard>(&layout_));
  }
}

absl::Status SparseTable::CheckKeys(absl::Span<const Key> keys) const {
  ShardIndex owned = map_.shard_num();  // the last shard that this server was found to own
  for (Key key : keys) {
    const ShardIndex shard = map_.shard(key);
    if (shard != owned && map_.server(shard) != rank_) return ForeignKey(key);
    if (key == kReservedKey64) return ReservedKey(key);
    owned = shard;
  }
  return absl::OkStatus();
}

absl::Status SparseTable::ForeignKey(Key key) const {
  const ShardIndex shard = map_.shard(key);
  return absl::OutOfRangeError(absl::StrCat(
      "table '", spec_.name(), "': key ", key, " belongs to shard ", shard, ", which server ",
      map_.server(shard), " of ", map_.server_num(), " owns; this is server ", rank_,
      "; client and server disagree on the shard map"));
}

absl::Status SparseTable::ReservedKey(Key key) const {
  return absl::OutOfRangeError(
      absl::StrCat("table '", spec_.name(), "': key ", key,
                   " is reserved (it marks an empty place in hash tables); no feature may use it"));
}

void SparseTable::Pull(absl::Span<const Key> keys, bool absent_is_zero, float* out,
                       uint8_t* has_embedx) const {
  for (size_t begin = 0, end; begin < keys.size(); begin = end) {
    const ShardIndex index = map_.shard(keys[begin]);
    for (end = begin + 1; end < keys.size() && map_.shard(keys[end]) == index;) ++end;
    const Shard& shard = *shards_[map_.local_index(index)];
    shard.reads.fetch_add(end - begin, std::memory_order_relaxed);
    absl::ReaderMutexLock lock(&shard.mutex);
    shard.rows->Read(keys.subspan(begin, end - begin), absent_is_zero,
                     out + begin * layout_.full_floats(), has_embedx + begin);
  }
}

void SparseTable::Write(absl::Span<const ValueBlock> blocks, ThreadPool& pool) {
  const auto ranges = RangesByShard(map_, local_shard_num(), blocks);
  pool.ParallelFor(shards_.size(), [&](size_t local) {
    size_t count = 0;
    for (const KeyRange& range : ranges[local]) count += range.end - range.begin;
    Shard& shard = *shards_[local];
    std::vector<char*> pages;
    {
      absl::MutexLock lock(&shard.mutex);
      if (shard.rows->rows() == 0) shard.rows->Expect(count);
      for (const KeyRange& range : ranges[local]) {
        const ValueBlock& block = blocks[range.block];
        shard.rows->Write(block.keys.subspan(range.begin, range.end - range.begin),
                          block.values + size_t{range.begin} * layout_.full_floats(),
                          block.has_embedx + range.begin);
      }
      shard.rows->DropPlaced();
      pages = PagesToMove(shard);
    }
    for (char* page : pages) CollapsePages(page, kHugePageBytes);
  });
}

// To move a page costs about as much as kReads reads of each of its rows lose on small pages.
std::vector<char*> SparseTable::PagesToMove(Shard& shard) {
  constexpr uint64_t kReads = 4;
  if (shard.reads < kReads * shard.rows->rows()) return {};
  shard.reads = 0;
  return shard.rows->TakeFullPages();
}

void SparseTable::Place(uint32_t local, absl::Span<const ValueBlock> blocks,
                        absl::Span<const KeyRange> ranges) {
  constexpr uint32_t kRows = 1024;  // the most that a pull waits for
  Shard& shard = *shards_[local];
  {
    absl::MutexLock lock(&shard.mutex);
    shard.rows->DropPlaced();
  }
  for (const KeyRange& range : ranges) {
    const ValueBlock& block = blocks[range.block];
    for (uint32_t begin = range.begin; begin < range.end; begin += kRows) {
      const uint32_t n = std::min(kRows, range.end - begin);
      absl::MutexLock lock(&shard.mutex);
      shard.rows->Place(block.keys.subspan(begin, n),
                        block.values + size_t{begin} * layout_.full_floats(),
                        block.has_embedx + begin);
    }
  }
}

void SparseTable::DropPlaced() {
  for (const std::unique_ptr<Shard>& shard : shards_) {
    absl::MutexLock lock(&shard->mutex);
    shard->rows->DropPlaced();
  }
}

void SparseTable::Insert(uint32_t local, Key key, const float* value, bool has_embedx) {
  Shard& shard = *shards_[local];
  absl::MutexLock lock(&shard.mutex);
  shard.rows->Write(key, value, has_embedx);
}

bool SparseTable::Remove(uint32_t local, Key key) {
  Shard& shard = *shards_[local];
  absl::MutexLock lock(&shard.mutex);
  return shard.rows->Remove(key);
}

void SparseTable::Sweep(uint32_t local, const std::function<RowFate(Key, float*, bool)>& visit) {
  Shard& shard = *shards_[local];
  absl::MutexLock lock(&shard.mutex);
  shard.rows->Sweep(visit);
}

void SparseTable::WriteShard(uint32_t local, absl::Span<const Key> keys, const float* values,
                             const uint8_t* has_embedx) {
  Shard& shard = *shards_[local];
  absl::MutexLock lock(&shard.mutex);
  shard.rows->Write(keys, values, has_embedx);
}

size_t SparseTable::CreateRows(uint32_t local, absl::Span<const Key> keys, const float* values,
                               const uint8_t* has_embedx) {
  Shard& shard = *shards_[local];
  absl::MutexLock lock(&shard.mutex);
  return shard.rows->Create(keys, values, has_embedx);
}

void SparseTable::Expect(uint32_t local, size_t rows) {
  Shard& shard = *shards_[local];
  absl::MutexLock lock(&shard.mutex);
  shard.rows->Expect(rows);
}

void SparseTable::ReadShard(uint32_t local,
                            const std::function<void(const RowMap& rows)>& read) const {
  const Shard& shard = *shards_[local];
  absl::ReaderMutexLock lock(&shard.mutex);
  read(*shard.rows);
}

uint64_t SparseTable::Scan(uint32_t local, uint64_t cursor, size_t limit,
                           const std::function<void(Key, const float*, bool)>& visit) const {
  const Shard& shard = *shards_[local];
  absl::ReaderMutexLock lock(&shard.mutex);
  return shard.rows->Scan(cursor, limit, visit);
}

bool SparseTable::Find(Key key, float* out, bool* has_embedx) const {
  const ShardIndex index = map_.shard(key);
  if (map_.server(index) != rank_) return false;
  const Shard& shard = *shards_[map_.local_index(index)];
  absl::ReaderMutexLock lock(&shard.mutex);
  return shard.rows->Find(key, out, has_embedx);
}

void SparseTable::Clear() {
  for (const std::unique_ptr<Shard>& shard : shards_) {
    auto rows = std::make_unique<RowMap>(&layout_);  // the old rows are freed without the lock
    absl::MutexLock lock(&shard->mutex);
    shard->rows.swap(rows);
  }
}

SparseTable::Counts SparseTable::counts() const {
  Counts counts;
  for (const std::unique_ptr<Shard>& shard : shards_) {
    absl::ReaderMutexLock lock(&shard->mutex);
    counts.rows += shard->rows->rows();
    counts.embedx_rows += shard->rows->embedx_rows();
    counts.value_bytes += shard->rows->value_bytes();
    counts.memory_bytes += shard->rows->memory_bytes();
  }
  return counts;
}

uint64_t SparseTable::Digest() const {
  uint64_t sum = 0;
  for (const std::unique_ptr<Shard>& shard : shards_) {
    absl::ReaderMutexLock lock(&shard->mutex);
    sum += DigestOf(*shard->rows, layout_);
  }
  return sum;
}

}  // namespace cistern
