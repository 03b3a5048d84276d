#include "server/table/memory_cache.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/log.h"
#include "common/value/accessor.h"
#include "common/value/cache_share.h"
#include "common/value/row_lifecycle.h"

namespace cistern::server {
namespace {

// A cache without some rows is still a cache; whoever reads those rows gets the error.
void NoteUnread(const absl::Status& status) {
  if (!status.ok()) LogWarning(absl::StrCat("memory cache: ", std::string(status.message())));
}

// Shows that decay by the day count as of the newest day on which a row was seen, because the order
// of the rows is the same on each later day. 0 if the table counts no days.
uint32_t NewestDay(const SparseTable& table, ThreadPool& pool) {
  const auto lifecycle = table.layout().accessor().MakeLifecycle(table.layout(), /*day=*/0);
  std::atomic<uint32_t> newest{0};
  pool.ParallelFor(table.local_shard_num(), [&](size_t local) {
    uint32_t mine = 0;
    NoteUnread(table.ScanAll(static_cast<uint32_t>(local), [&](Key, const float* value, bool) {
      mine = std::max(mine, lifecycle->DayOf(value));
    }));
    uint32_t seen = newest;
    while (mine > seen && !newest.compare_exchange_weak(seen, mine)) {
    }
  });
  return newest;
}

// The k rows of a shard with the most shows.
std::shared_ptr<const MemoryCache::Keys> MostShown(const SparseTable& table, uint32_t local,
                                                   uint64_t k, uint32_t day) {
  using Row = std::pair<double, Key>;  // minus its shows: the order of pairs is that of the cache
  const auto lifecycle = table.layout().accessor().MakeLifecycle(table.layout(), day);
  std::vector<Row> top;  // a heap with the least shown on top
  NoteUnread(table.ScanAll(local, [&](Key key, const float* value, bool) {
    const double show = lifecycle->CountsOf(value).show;
    const Row row(std::isnan(show) ? 0 : -show, key);
    if (top.size() == k) {
      if (!(row < top.front())) return;
      std::pop_heap(top.begin(), top.end());
      top.pop_back();
    }
    top.push_back(row);
    std::push_heap(top.begin(), top.end());
  }));
  std::sort_heap(top.begin(), top.end());
  auto keys = std::make_shared<MemoryCache::Keys>();
  keys->reserve(top.size());
  for (const Row& row : top) keys->push_back(row.second);
  return keys;
}

}  // namespace

bool MemoryCache::is_filled() const {
  const absl::MutexLock lock(&mutex_);
  return !lists_.empty();
}

uint64_t MemoryCache::Fill(const TableStore& store, ThreadPool& pool) {
  if (!is_on()) return 0;
  Lists lists;
  for (const auto& table : store.sparse_tables()) {
    auto& shards = lists.emplace_back();
    if (!table->layout().accessor().has_statistics()) continue;
    shards.resize(table->local_shard_num());
    const uint64_t k =
        CachedRowsOfShard(table->counts().rows, rate_, std::max(1u, table->local_shard_num()));
    const uint32_t day = NewestDay(*table, pool);
    pool.ParallelFor(shards.size(), [&](size_t local) {
      shards[local] = MostShown(*table, static_cast<uint32_t>(local), k, day);
    });
  }
  uint64_t rows = 0;
  for (const auto& shards : lists) {
    for (const auto& keys : shards) rows += keys->size();
  }
  const absl::MutexLock lock(&mutex_);
  lists_ = std::move(lists);
  return rows;
}

void MemoryCache::Drop() {
  const absl::MutexLock lock(&mutex_);
  lists_.clear();
}

std::shared_ptr<const MemoryCache::Keys> MemoryCache::Of(TableId table, uint32_t local) const {
  const absl::MutexLock lock(&mutex_);
  if (table >= lists_.size() || local >= lists_[table].size()) return nullptr;
  return lists_[table][local];
}

}  // namespace cistern::server
