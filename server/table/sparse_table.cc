#include "server/table/sparse_table.h"

#include <algorithm>
#include <unordered_set>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/pages.h"
#include "common/value/row_digest.h"

namespace cistern::server {
namespace {

// Cursors of a table with rows in files: this bit, the number of a part, and of a row in it. Others
// are smaller (row_map.cc).
constexpr uint64_t kColdCursor = uint64_t{1} << 63;
constexpr int kPartShift = 32;
// A call visits so many rows of a part, if it has them, because it reads the whole part.
constexpr size_t kMinScan = size_t{1} << 14;

// Keys that a pull looks for in files before it begins with further shards.
constexpr size_t kMaxReadsTogether = size_t{1} << 16;

}  // namespace

absl::StatusOr<std::unique_ptr<SparseTable>> SparseTable::Create(const v1::TableSpec& spec,
                                                                 const ShardMap& map, uint32_t rank,
                                                                 bool tiered) {
  CISTERN_ASSIGN_OR_RETURN(const ValueLayout layout, ValueLayout::CreateStored(spec));
  if (rank >= map.server_num()) {
    return absl::InvalidArgumentError(
        absl::StrCat("server rank ", rank, " of ", map.server_num(), " servers does not exist"));
  }
  return std::unique_ptr<SparseTable>(new SparseTable(spec, layout, map, rank, tiered));
}

SparseTable::SparseTable(const v1::TableSpec& spec, const ValueLayout& layout, const ShardMap& map,
                         uint32_t rank, bool tiered)
    : spec_(spec), layout_(layout), map_(map), rank_(rank), tiered_(tiered) {
  for (uint32_t local = 0; local < map_.local_shard_num(rank_); ++local) {
    shards_.push_back(std::make_unique<Shard>(&layout_, tiered_));
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

absl::Status SparseTable::Pull(absl::Span<const Key> keys, bool absent_is_zero, float* out,
                               uint8_t* has_embedx, PassId pass) const {
  if (tiered_) return PullTiered(keys, absent_is_zero, out, has_embedx, pass);
  for (size_t begin = 0, end; begin < keys.size(); begin = end) {
    end = EndOfShard(keys, begin);
    const Shard& shard = *shards_[map_.local_index(map_.shard(keys[begin]))];
    shard.reads.fetch_add(end - begin, std::memory_order_relaxed);
    const absl::Span<const Key> mine = keys.subspan(begin, end - begin);
    float* const values = out + begin * layout_.full_floats();
    std::shared_ptr<const DueRows> hidden;
    {
      absl::ReaderMutexLock lock(&shard.mutex);
      shard.rows->Read(mine, absent_is_zero, values, has_embedx + begin);
      if (pass != 0) hidden = HiddenFrom(shard, pass);
    }
    Hide(hidden.get(), mine, absent_is_zero, values, has_embedx + begin);
  }
  return absl::OkStatus();
}

size_t SparseTable::EndOfShard(absl::Span<const Key> keys, size_t begin) const {
  const ShardIndex shard = map_.shard(keys[begin]);
  size_t end = begin + 1;
  while (end < keys.size() && map_.shard(keys[end]) == shard) ++end;
  return end;
}

std::shared_ptr<const DueRows> SparseTable::HiddenFrom(const Shard& shard, PassId pass) {
  return pass == shard.due_pass + 2 ? shard.due : nullptr;
}

void SparseTable::Hide(const DueRows* hidden, absl::Span<const Key> keys, bool absent_is_zero,
                       float* out, uint8_t* has_embedx) const {
  if (hidden == nullptr) return;
  const size_t stride = layout_.full_floats();
  for (size_t i = 0; i < keys.size(); ++i) {
    if (!hidden->Has(keys[i])) continue;
    if (absent_is_zero) {
      std::fill_n(out + i * stride, stride, 0.0f);
      has_embedx[i] = kAbsent;
    } else {
      has_embedx[i] = layout_.Initialize(keys[i], out + i * stride);
    }
  }
}

struct SparseTable::TieredPull {
  const Shard* shard = nullptr;
  absl::Span<const Key> keys;
  float* out = nullptr;  // [keys, full_floats]
  uint8_t* has_embedx = nullptr;
  std::shared_ptr<const DueRows> hidden;
  std::shared_ptr<const ColdRows> cold;
  uint64_t commits = 0;         // of the shard when `cold` was its files
  std::vector<ColdRead> reads;  // of the keys that are not in memory
};

SparseTable::TieredPull SparseTable::BeginTiered(const Shard& shard, absl::Span<const Key> keys,
                                                 bool absent_is_zero, float* out,
                                                 uint8_t* has_embedx, PassId pass) const {
  TieredPull pull;
  pull.shard = &shard;
  pull.keys = keys;
  pull.out = out;
  pull.has_embedx = has_embedx;
  {
    absl::ReaderMutexLock lock(&shard.mutex);
    pull.cold = shard.cold;
    pull.commits = shard.pulled.commits();
    shard.rows->Read(keys, absent_is_zero || pull.cold != nullptr, out, has_embedx);
    if (pass != 0) pull.hidden = HiddenFrom(shard, pass);
  }
  for (size_t i = 0; pull.cold != nullptr && i < keys.size(); ++i) {
    if (has_embedx[i] != kAbsent) continue;
    pull.reads.push_back({keys[i], out + i * layout_.full_floats(), has_embedx + i});
  }
  return pull;
}

void SparseTable::EndTiered(const TieredPull& pull, bool absent_is_zero) const {
  RowDigest digest(layout_);
  std::vector<ColdDigest> read_rows;
  for (const ColdRead& read : pull.reads) {
    if (*read.has_embedx != kAbsent) {
      read_rows.push_back({read.key, digest(read.key, read.value, *read.has_embedx != 0)});
    } else if (!absent_is_zero) {
      *read.has_embedx = layout_.Initialize(read.key, read.value);
    }
  }
  pull.shard->pulled.Add(pull.commits, read_rows);
  Hide(pull.hidden.get(), pull.keys, absent_is_zero, pull.out, pull.has_embedx);
}

absl::Status SparseTable::PullTiered(absl::Span<const Key> keys, bool absent_is_zero, float* out,
                                     uint8_t* has_embedx, PassId pass) const {
  for (size_t begin = 0; begin < keys.size();) {
    // Shards that are read together, because each alone may need a few blocks only.
    std::vector<TieredPull> pulls;
    std::vector<std::unique_ptr<ColdReading>> readings;
    size_t read_num = 0;
    while (begin < keys.size() && read_num < kMaxReadsTogether) {
      const size_t end = EndOfShard(keys, begin);
      const Shard& shard = *shards_[map_.local_index(map_.shard(keys[begin]))];
      shard.reads.fetch_add(end - begin, std::memory_order_relaxed);
      pulls.push_back(BeginTiered(shard, keys.subspan(begin, end - begin), absent_is_zero,
                                  out + begin * layout_.full_floats(), has_embedx + begin, pass));
      const TieredPull& pull = pulls.back();
      if (!pull.reads.empty()) readings.push_back(pull.cold->Begin(pull.reads));
      read_num += pull.reads.size();
      begin = end;
    }
    cold_reads_.fetch_add(read_num, std::memory_order_relaxed);
    CISTERN_RETURN_IF_ERROR(
        AddContext(ReadTogether(readings), absl::StrCat("table '", spec_.name(), "'")));
    for (const TieredPull& pull : pulls) EndTiered(pull, absent_is_zero);
  }
  return absl::OkStatus();
}

void SparseTable::EndPulls(Shard& shard, absl::Span<const ValueBlock> blocks,
                           absl::Span<const KeyRange> ranges, absl::Span<const Key> removed) {
  std::vector<Key> written(removed.begin(), removed.end());
  for (const KeyRange& range : ranges) {
    const auto keys = blocks[range.block].keys.subspan(range.begin, range.end - range.begin);
    written.insert(written.end(), keys.begin(), keys.end());
  }
  shard.pulled.EndCommit(std::move(written));
}

std::vector<ColdDigest> SparseTable::KnownDigests(uint32_t local,
                                                  absl::Span<const Key> keys) const {
  return shards_[local]->pulled.Find(keys);
}

void SparseTable::Remove(Shard& shard, const Eviction& eviction, uint32_t local, bool files) {
  const Eviction::Shard& commit = eviction.shards[local];
  for (const Key key : commit.removed) shard.rows->Remove(key);
  if (files && shard.cold != nullptr && !commit.removed.empty()) {
    auto removed = std::make_shared<const std::vector<Key>>(commit.removed);
    shard.cold = Changed(
        std::move(shard.cold),
        [removed](Key key, float*, bool) {
          return std::binary_search(removed->begin(), removed->end(), key) ? RowFate::kRemove
                                                                           : RowFate::kKeep;
        },
        layout_.full_floats());
  }
  shard.due = commit.due;
  shard.due_pass = eviction.pass;
  expired_ += commit.by_bounds.expired;
  evicted_ += commit.by_bounds.evicted;
}

void SparseTable::Write(absl::Span<const ValueBlock> blocks, ThreadPool& pool,
                        const Eviction* eviction) {
  const auto ranges = RangesByShard(map_, local_shard_num(), blocks);
  pool.ParallelFor(shards_.size(), [&](size_t local) {
    size_t count = 0;
    for (const KeyRange& range : ranges[local]) count += range.end - range.begin;
    Shard& shard = *shards_[local];
    std::vector<char*> pages;
    {
      absl::MutexLock lock(&shard.mutex);
      ++shard.writes;
      if (shard.rows->rows() == 0) shard.rows->Expect(count);
      for (const KeyRange& range : ranges[local]) {
        const ValueBlock& block = blocks[range.block];
        shard.rows->Write(block.keys.subspan(range.begin, range.end - range.begin),
                          block.values + size_t{range.begin} * layout_.full_floats(),
                          block.has_embedx + range.begin);
      }
      shard.rows->DropPlaced();
      absl::Span<const Key> removed;
      if (eviction != nullptr && !eviction->shards.empty()) {
        Remove(shard, *eviction, static_cast<uint32_t>(local), /*files=*/true);
        removed = eviction->shards[local].removed;
      }
      if (tiered_) EndPulls(shard, blocks, ranges[local], removed);
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
  ++shard.writes;
  shard.ForgetDue();
  shard.rows->Write(key, value, has_embedx);
}

void SparseTable::ChangeAll(uint32_t local, const RowChange& change, const RowChange& visit) {
  Shard& shard = *shards_[local];
  absl::MutexLock lock(&shard.mutex);
  ++shard.writes;
  // A row that is removed here must not come back from a file, which may hold an older value of it.
  auto removed = std::make_shared<std::unordered_set<Key>>();
  shard.rows->Sweep([&](Key key, float* value, bool has_embedx) {
    const RowFate fate = (visit ? visit : change)(key, value, has_embedx);
    if (fate == RowFate::kRemove && shard.cold != nullptr) removed->insert(key);
    return fate;
  });
  if (shard.cold == nullptr) return;
  shard.pulled.Clear();
  shard.cold = Changed(
      std::move(shard.cold),
      [change, removed](Key key, float* value, bool has_embedx) {
        return removed->count(key) != 0 ? RowFate::kRemove : change(key, value, has_embedx);
      },
      layout_.full_floats());
}

void SparseTable::WriteShard(uint32_t local, absl::Span<const Key> keys, const float* values,
                             const uint8_t* has_embedx) {
  Shard& shard = *shards_[local];
  absl::MutexLock lock(&shard.mutex);
  ++shard.writes;
  shard.ForgetDue();
  shard.rows->Write(keys, values, has_embedx);
}

void SparseTable::RemoveRows(uint32_t local, absl::Span<const Key> keys) {
  Shard& shard = *shards_[local];
  absl::MutexLock lock(&shard.mutex);
  ++shard.writes;
  for (const Key key : keys) shard.rows->Remove(key);
}

size_t SparseTable::CreateRows(uint32_t local, absl::Span<const Key> keys, const float* values,
                               const uint8_t* has_embedx) {
  Shard& shard = *shards_[local];
  absl::MutexLock lock(&shard.mutex);
  ++shard.writes;
  shard.ForgetDue();
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

absl::StatusOr<uint64_t> SparseTable::Scan(uint32_t local, uint64_t cursor, size_t limit,
                                           const Visit& visit) const {
  const Shard& shard = *shards_[local];
  if ((cursor & kColdCursor) == 0) {
    absl::ReaderMutexLock lock(&shard.mutex);
    if (shard.cold == nullptr) return shard.rows->Scan(cursor, limit, visit);
    cursor = kColdCursor;
  }
  size_t visited = 0;
  const Visit count = [&](Key key, const float* value, bool has_embedx) {
    ++visited;
    visit(key, value, has_embedx);
  };
  // Parts without rows are passed over: a caller may expect a row of each call.
  while (visited == 0 && cursor != 0) {
    CISTERN_ASSIGN_OR_RETURN(cursor, ScanCold(shard, cursor, limit, count));
  }
  return cursor;
}

std::shared_ptr<const std::vector<Key>> SparseTable::HotKeys(const Shard& shard) {
  {
    absl::MutexLock lock(&shard.scanned.mutex);
    if (shard.scanned.keys != nullptr && shard.scanned.writes == shard.writes) {
      return shard.scanned.keys;
    }
  }
  auto keys = std::make_shared<std::vector<Key>>(shard.rows->Keys());
  std::sort(keys->begin(), keys->end());
  absl::MutexLock lock(&shard.scanned.mutex);
  shard.scanned.keys = keys;
  shard.scanned.writes = shard.writes;
  return keys;
}

absl::StatusOr<uint64_t> SparseTable::ScanCold(const Shard& shard, uint64_t cursor, size_t limit,
                                               const Visit& visit) const {
  const uint64_t part = (cursor & ~kColdCursor) >> kPartShift;
  const size_t skip = cursor & ((uint64_t{1} << kPartShift) - 1);
  limit = std::max(limit, kMinScan);
  std::shared_ptr<const ColdRows> cold;
  {
    absl::ReaderMutexLock lock(&shard.mutex);
    cold = shard.cold;
  }
  const uint64_t parts = cold == nullptr ? 0 : std::max<uint64_t>(1, cold->part_num());
  if (part >= parts) return 0;
  const bool is_last = part + 1 == parts;
  const size_t stride = layout_.full_floats();
  RowBatch rows;
  if (part < cold->part_num()) {
    CISTERN_RETURN_IF_ERROR(
        AddContext(cold->ReadPart(part,
                                  [&](Key key, const float* value, bool has_embedx) {
                                    rows.Add(key, value, stride, has_embedx);
                                    return absl::OkStatus();
                                  }),
                   absl::StrCat("table '", spec_.name(), "'")));
  }
  std::vector<float> value(stride);
  absl::ReaderMutexLock lock(&shard.mutex);
  const std::shared_ptr<const std::vector<Key>> hot = HotKeys(shard);
  auto next_hot =
      part == 0 ? hot->begin() : std::lower_bound(hot->begin(), hot->end(), cold->part_begin(part));
  const auto end_hot =
      is_last ? hot->end() : std::lower_bound(next_hot, hot->end(), cold->part_begin(part + 1));
  size_t at = 0, place = 0;  // in `rows`, and in the part
  while (next_hot != end_hot || at < rows.size()) {
    if (place == skip + limit) return kColdCursor | part << kPartShift | place;
    const bool is_hot = next_hot != end_hot && (at == rows.size() || *next_hot <= rows.keys[at]);
    // Memory has the newest value of a row.
    const bool is_both = is_hot && at < rows.size() && rows.keys[at] == *next_hot;
    if (place++ >= skip) {
      bool has_embedx = false;
      if (!is_hot) {
        visit(rows.keys[at], &rows.values[at * stride], rows.has_embedx[at] != 0);
      } else if (shard.rows->Find(*next_hot, value.data(), &has_embedx)) {
        visit(*next_hot, value.data(), has_embedx);
      }
    }
    next_hot += is_hot;
    at += !is_hot || is_both;
  }
  if (!is_last) return kColdCursor | (part + 1) << kPartShift;
  absl::MutexLock scanned(&shard.scanned.mutex);
  shard.scanned.keys = nullptr;
  return 0;
}

absl::Status SparseTable::ScanAll(uint32_t local, const Visit& visit) const {
  uint64_t cursor = 0;
  do {
    CISTERN_ASSIGN_OR_RETURN(cursor, Scan(local, cursor, SIZE_MAX, visit));
  } while (cursor != 0);
  return absl::OkStatus();
}

absl::StatusOr<bool> SparseTable::Find(Key key, float* out, bool* has_embedx) const {
  const ShardIndex index = map_.shard(key);
  if (map_.server(index) != rank_) return false;
  const Shard& shard = *shards_[map_.local_index(index)];
  std::shared_ptr<const ColdRows> cold;
  {
    absl::ReaderMutexLock lock(&shard.mutex);
    if (shard.rows->Find(key, out, has_embedx)) return true;
    cold = shard.cold;
  }
  uint8_t state = kAbsent;
  if (cold != nullptr) {
    const ColdRead read = {key, out, &state};
    CISTERN_RETURN_IF_ERROR(AddContext(cold->Read(absl::MakeConstSpan(&read, 1)),
                                       absl::StrCat("table '", spec_.name(), "'")));
  }
  if (state == kAbsent) return false;
  *has_embedx = state != 0;
  return true;
}

void SparseTable::Clear() {
  for (const std::unique_ptr<Shard>& shard : shards_) {
    // The old rows are freed without the lock.
    auto rows = std::make_unique<RowMap>(&layout_, tiered_);
    absl::MutexLock lock(&shard->mutex);
    ++shard->writes;
    shard->rows.swap(rows);
    shard->ForgetDue();
    shard->cold = nullptr;
    shard->pulled.Clear();
  }
}

SparseTable::Counts SparseTable::counts() const {
  Counts counts;
  for (const std::unique_ptr<Shard>& shard : shards_) {
    absl::ReaderMutexLock lock(&shard->mutex);
    counts.hot_rows += shard->rows->rows();
    counts.rows += shard->cold != nullptr ? shard->row_num : shard->rows->rows();
    if (shard->cold != nullptr) counts.cold_index_bytes += shard->cold->memory_bytes();
    counts.embedx_rows += shard->rows->embedx_rows();
    counts.value_bytes += shard->rows->value_bytes();
    counts.memory_bytes += shard->rows->memory_bytes();
  }
  counts.memory_bytes += counts.cold_index_bytes;
  return counts;
}

absl::StatusOr<uint64_t> SparseTable::Digest() const {
  uint64_t sum = 0;
  RowDigest digest(layout_);
  for (uint32_t local = 0; local < local_shard_num(); ++local) {
    CISTERN_RETURN_IF_ERROR(ScanAll(local, [&](Key key, const float* value, bool has_embedx) {
      sum += digest(key, value, has_embedx);
    }));
  }
  return sum;
}

// --- bounded tables

uint64_t SparseTable::rows(uint32_t local) const {
  const Shard& shard = *shards_[local];
  absl::ReaderMutexLock lock(&shard.mutex);
  return shard.cold != nullptr ? shard.row_num : shard.rows->rows();
}

std::shared_ptr<const DueRows> SparseTable::due(uint32_t local) const {
  const Shard& shard = *shards_[local];
  absl::ReaderMutexLock lock(&shard.mutex);
  return shard.due;
}

bool SparseTable::IsDueKnown(uint32_t local, PassId pass) const {
  const Shard& shard = *shards_[local];
  absl::ReaderMutexLock lock(&shard.mutex);
  return shard.due_pass == pass;
}

void SparseTable::SetDue(uint32_t local, PassId pass, std::shared_ptr<const DueRows> due) {
  Shard& shard = *shards_[local];
  absl::MutexLock lock(&shard.mutex);
  shard.due_pass = pass;
  shard.due = std::move(due);
}

// --- tiered tables

std::shared_ptr<const ColdRows> SparseTable::cold(uint32_t local) const {
  const Shard& shard = *shards_[local];
  absl::ReaderMutexLock lock(&shard.mutex);
  return shard.cold;
}

void SparseTable::SetCold(uint32_t local, std::shared_ptr<const ColdRows> cold, uint64_t rows) {
  CISTERN_CHECK(tiered_);
  Shard& shard = *shards_[local];
  absl::MutexLock lock(&shard.mutex);
  shard.cold = std::move(cold);
  shard.row_num = rows;
  shard.pulled.Clear();
}

void SparseTable::SetRows(uint32_t local, uint64_t rows) {
  Shard& shard = *shards_[local];
  absl::MutexLock lock(&shard.mutex);
  shard.row_num = rows;
}

float SparseTable::ScoreOfNew(const ColdRows* cold, Key key, float now) {
  // A row that exists was seen before: at best by the pass before this one.
  if (cold == nullptr || !cold->MayHave(key)) return now;
  return AddPass(now - static_cast<float>(kScorePerPass), now);
}

PassRows SparseTable::AddScores(absl::Span<const ValueBlock> blocks, ThreadPool& pool, float now,
                                ScoreHistogram* scores) const {
  const auto ranges = RangesByShard(map_, local_shard_num(), blocks);
  absl::Mutex mutex;  // guards *scores and `all`
  PassRows all;
  pool.ParallelFor(shards_.size(), [&](size_t local) {
    const Shard& shard = *shards_[local];
    ScoreHistogram mine(now);
    PassRows pass;
    {
      absl::ReaderMutexLock lock(&shard.mutex);
      shard.rows->CountScores(&mine);
      std::vector<uint32_t> absent;
      for (const KeyRange& range : ranges[local]) {
        const ValueBlock& block = blocks[range.block];
        absent.clear();
        shard.rows->MoveScores(block.keys.subspan(range.begin, range.end - range.begin), now, &mine,
                               &absent);
        pass.rows += range.end - range.begin;
        pass.found += range.end - range.begin - absent.size();
        for (uint32_t at = range.begin; at < range.end; ++at) {
          pass.bytes += shard.rows->RowBytes(block.has_embedx[at] != 0);
        }
        for (const uint32_t i : absent) {
          const uint32_t at = range.begin + i;
          mine.Add(ScoreOfNew(shard.cold.get(), block.keys[at], now),
                   shard.rows->RowBytes(block.has_embedx[at] != 0));
        }
      }
    }
    absl::MutexLock lock(&mutex);
    scores->Add(mine);
    all.rows += pass.rows;
    all.found += pass.found;
    all.bytes += pass.bytes;
  });
  return all;
}

void SparseTable::WriteDurable(absl::Span<const ValueBlock> blocks, const Durable& commit,
                               ThreadPool& pool) {
  CISTERN_CHECK(tiered_ && commit.cold.size() == shards_.size());
  const auto ranges = RangesByShard(map_, local_shard_num(), blocks);
  const size_t stride = layout_.full_floats();
  pool.ParallelFor(shards_.size(), [&](size_t local) {
    Shard& shard = *shards_[local];
    std::vector<uint32_t> absent;
    std::vector<size_t> absent_ends;  // of each range, in `absent`
    absl::MutexLock lock(&shard.mutex);
    ++shard.writes;
    RowMap& rows = *shard.rows;
    rows.set_now(commit.now);
    for (const KeyRange& range : ranges[local]) {
      const ValueBlock& block = blocks[range.block];
      rows.Update(block.keys.subspan(range.begin, range.end - range.begin),
                  block.values + size_t{range.begin} * stride, block.has_embedx + range.begin,
                  &absent);
      absent_ends.push_back(absent.size());
    }
    // Frees the memory that the new rows take.
    if (!commit.cut.keeps_all()) rows.Evict(commit.cut);
    size_t next = 0;
    for (size_t r = 0; r < absent_ends.size(); ++r) {
      const KeyRange& range = ranges[local][r];
      const ValueBlock& block = blocks[range.block];
      for (; next < absent_ends[r] && commit.admits; ++next) {
        const uint32_t at = range.begin + absent[next];
        const Key key = block.keys[at];
        const float score = ScoreOfNew(shard.cold.get(), key, commit.now);
        if (!commit.cut.Keeps(score, key)) continue;
        rows.Add(key, block.values + size_t{at} * stride, block.has_embedx[at] != 0, score);
      }
    }
    absl::Span<const Key> removed;
    if (commit.eviction != nullptr && !commit.eviction->shards.empty()) {
      Remove(shard, *commit.eviction, static_cast<uint32_t>(local), /*files=*/false);
      removed = commit.eviction->shards[local].removed;
    }
    EndPulls(shard, blocks, ranges[local], removed);
    shard.cold = commit.cold[local];
    shard.row_num = commit.rows[local];
  });
  PackShards();
}

// As a table grows, what finds its rows in files takes memory from the rows in memory, whose number
// falls.
void SparseTable::PackShards() {
  constexpr int kShards = 4;  // of a commit: each needs the memory of its rows twice
  constexpr size_t kShare = 16, kLeast = size_t{256} << 10;  // to be worth it
  int packed = 0;
  for (const std::unique_ptr<Shard>& shard : shards_) {
    if (packed == kShards) return;
    std::unique_ptr<RowMap> rows;
    uint64_t writes = 0;
    {
      absl::ReaderMutexLock lock(&shard->mutex);
      const size_t unused = shard->rows->unused_bytes();
      if (unused < std::max(kLeast, shard->rows->memory_bytes() / kShare)) continue;
      rows = shard->rows->Packed();
      writes = shard->writes;
    }
    ++packed;
    absl::MutexLock lock(&shard->mutex);
    if (shard->writes == writes) shard->rows.swap(rows);
  }
}

}  // namespace cistern::server
