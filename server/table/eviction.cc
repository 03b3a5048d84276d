#include "server/table/eviction.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <queue>
#include <tuple>
#include <unordered_set>
#include <utility>

#include "common/base/hash.h"
#include "common/value/bfloat16_cells.h"
#include "common/value/pass_days.h"
#include "server/table/sparse_table.h"

namespace cistern::server {
namespace {

// What makes a row stay, smallest first.
struct Standing {
  double measure = 0;
  float last_pass = 0;
  uint64_t mixed = 0;  // key

  bool operator<(const Standing& other) const {
    return std::tie(measure, last_pass, mixed) <
           std::tie(other.measure, other.last_pass, other.mixed);
  }
};

// The squares are exact in a double and added in order, so no compiler changes the sum.
double SquaresOf(const float* cells, uint32_t count) {
  double sum = 0;
  for (uint32_t i = 0; i < count; ++i) {
    sum += static_cast<double>(cells[i]) * static_cast<double>(cells[i]);
  }
  return sum;
}

// What evict_by measures of a row.
class Measure {
 public:
  explicit Measure(const ValueLayout& layout)
      : layout_(layout),
        order_(layout.bounds().evict_by()),
        count_(layout.count_field()),
        show_(layout.FindField("show")),
        embed_w_(layout.FindField("embed_w")) {}

  double Of(const float* value, bool has_embedx) const {
    switch (order_) {
      case v1::TableBounds::SHOW:
        return LoadDouble(value + show_->first);
      case v1::TableBounds::COUNT:
        return static_cast<double>(value[count_->first]);
      case v1::TableBounds::NORM:
        return (embed_w_ == nullptr ? 0 : SquaresOf(value + embed_w_->first, 1)) +
               (has_embedx ? SquaresOfWeights(value) : 0);
      default:
        return 0;  // the last pass, which all orders compare next
    }
  }

 private:
  double SquaresOfWeights(const float* value) const {
    const float* const cells = value + layout_.weight_index();
    if (!layout_.is_packed()) return SquaresOf(cells, layout_.dim());
    thread_local std::vector<float> weights;
    weights.resize(layout_.dim());
    LoadBfloat16(cells, layout_.dim(), weights.data());
    return SquaresOf(weights.data(), layout_.dim());
  }

  const ValueLayout& layout_;
  const v1::TableBounds::Order order_;
  const ValueField* const count_;
  const ValueField* const show_;
  const ValueField* const embed_w_;
};

// After a commit of `pass`, rows whose last pass is below the result have expired.
PassId FirstPassThatStays(const v1::TableBounds& bounds, const DatedPass& pass) {
  const PassId end = pass.pass + 1, passes = bounds.expire_passes();
  const PassId by_pass = passes > 0 && passes <= end ? end - passes + 1 : 0;
  const PassId by_day =
      bounds.expire_days() > 0 ? FirstPassWithin(pass.days, bounds.expire_days()) : 0;
  return std::max(by_pass, by_day);
}

// Collects the rows of a shard after a commit, and finds those that are due.
class DueFinder {
 public:
  // first_to_stay: rows with an earlier last pass have expired. most: rows that may come, at most.
  DueFinder(const ValueLayout& layout, PassId first_to_stay, uint64_t share, uint64_t most)
      : measure_(layout),
        last_pass_index_(layout.last_pass_index()),
        first_to_stay_(first_to_stay),
        share_(share),
        most_evicted_(most > share ? most - share : 0) {}

  void Add(Key key, const float* value, bool has_embedx) {
    const float last_pass = value[last_pass_index_];
    if (PassOfCell(last_pass) < first_to_stay_) {
      expired_.push_back(key);
      return;
    }
    ++stay_;
    if (most_evicted_ == 0) return;
    const Standing standing{measure_.Of(value, has_embedx), last_pass, MixKey(key)};
    if (last_.size() < most_evicted_) {
      last_.push(standing);
    } else if (standing < last_.top()) {
      last_.pop();
      last_.push(standing);
    }
  }

  std::shared_ptr<const DueRows> Take() {
    const uint64_t evicted = stay_ > share_ ? stay_ - share_ : 0;
    while (last_.size() > evicted) last_.pop();
    std::vector<std::pair<Key, uint8_t>> rows;
    for (const Key key : expired_) rows.push_back({key, 1});
    for (; !last_.empty(); last_.pop()) rows.push_back({UnmixKey(last_.top().mixed), 0});
    if (rows.empty()) return nullptr;
    std::sort(rows.begin(), rows.end());
    auto due = std::make_shared<DueRows>();
    for (const auto& [key, expired] : rows) {
      due->keys.push_back(key);
      due->expired.push_back(expired);
    }
    return due;
  }

 private:
  const Measure measure_;
  const uint32_t last_pass_index_;
  const PassId first_to_stay_;
  const uint64_t share_, most_evicted_;
  std::vector<Key> expired_;
  uint64_t stay_ = 0;
  std::priority_queue<Standing> last_;  // the smallest of those that are not expired
};

// Whether rows of a shard may expire at a commit that were not due before it. What expires by day
// changes with the first pass of a day alone.
bool MayExpire(const SparseTable& table, uint32_t local, const DatedPass& pass) {
  const v1::TableBounds& bounds = table.layout().bounds();
  if (bounds.expire_passes() > 0) return true;
  if (bounds.expire_days() == 0 || pass.days.days().empty()) return false;
  const bool is_first_of_day = pass.days.days().rbegin()->first_pass() >= pass.pass;
  return is_first_of_day || !table.IsDueKnown(local, pass.pass - 1);
}

// The rows of a shard that a commit writes.
struct WrittenRows {
  absl::Span<const ValueBlock> blocks;
  absl::Span<const KeyRange> ranges;  // into blocks
  std::unordered_set<Key> keys;

  WrittenRows(absl::Span<const ValueBlock> all, absl::Span<const KeyRange> mine)
      : blocks(all), ranges(mine) {
    for (const KeyRange& range : ranges) {
      const auto some = blocks[range.block].keys.subspan(range.begin, range.end - range.begin);
      keys.insert(some.begin(), some.end());
    }
  }
};

// The rows that were due and that the commit does not write.
void RemoveDue(const SparseTable& table, uint32_t local, const WrittenRows& written,
               Eviction::Shard* shard) {
  const std::shared_ptr<const DueRows> due = table.due(local);
  for (size_t i = 0; due != nullptr && i < due->keys.size(); ++i) {
    if (written.keys.contains(due->keys[i])) continue;
    shard->removed.push_back(due->keys[i]);
    ++(due->expired[i] != 0 ? shard->by_bounds.expired : shard->by_bounds.evicted);
  }
}

// Decides what is due after a commit that writes `written` and removes shard->removed. all: from
// all rows, even if none can be due that was not before.
absl::Status FindDueOfShard(const SparseTable& table, uint32_t local, const DatedPass& pass,
                            const WrittenRows& written, bool all, Eviction::Shard* shard) {
  const ValueLayout& layout = table.layout();
  const size_t stride = layout.full_floats();
  const uint64_t share = ShareOfShard(layout.bounds(), table.shard_map().shard_num(),
                                      table.shard_map().global_shard(table.rank(), local));
  const uint64_t most = table.rows(local) + written.keys.size();
  if (!all && most <= share && !MayExpire(table, local, pass)) return absl::OkStatus();
  DueFinder finder(layout, FirstPassThatStays(layout.bounds(), pass), share, most);
  CISTERN_RETURN_IF_ERROR(table.ScanAll(local, [&](Key key, const float* value, bool has_embedx) {
    if (written.keys.contains(key)) return;
    if (std::binary_search(shard->removed.begin(), shard->removed.end(), key)) return;
    finder.Add(key, value, has_embedx);
  }));
  for (const KeyRange& range : written.ranges) {
    const ValueBlock& block = written.blocks[range.block];
    for (uint32_t i = range.begin; i < range.end; ++i) {
      const bool has_embedx = block.has_embedx[i] != 0 || !layout.embedx_is_optional();
      finder.Add(block.keys[i], block.values + size_t{i} * stride, has_embedx);
    }
  }
  shard->due = finder.Take();
  return absl::OkStatus();
}

// Calls plan(local, written, shard) for every shard, in parallel.
absl::StatusOr<Eviction> PlanShards(
    const SparseTable& table, PassId pass, absl::Span<const ValueBlock> blocks, ThreadPool& pool,
    const std::function<absl::Status(uint32_t, const WrittenRows&, Eviction::Shard*)>& plan) {
  Eviction eviction;
  eviction.pass = pass;
  const uint32_t shards = table.local_shard_num();
  const auto ranges = RangesByShard(table.shard_map(), shards, blocks);
  eviction.shards.resize(shards);
  std::vector<absl::Status> planned(shards);
  pool.ParallelFor(shards, [&](size_t local) {
    planned[local] = plan(static_cast<uint32_t>(local), WrittenRows(blocks, ranges[local]),
                          &eviction.shards[local]);
  });
  for (const absl::Status& status : planned) CISTERN_RETURN_IF_ERROR(status);
  return eviction;
}

}  // namespace

bool DueRows::Has(Key key) const {
  return std::binary_search(keys.begin(), keys.end(), key);
}

uint64_t ShareOfShard(const v1::TableBounds& bounds, uint32_t shard_num, ShardIndex shard) {
  if (bounds.max_rows() == 0) return std::numeric_limits<uint64_t>::max();
  return bounds.max_rows() / shard_num + (shard < bounds.max_rows() % shard_num);
}

absl::StatusOr<Eviction> PlanEviction(const SparseTable& table, const DatedPass& pass,
                                      absl::Span<const ValueBlock> blocks, ThreadPool& pool) {
  if (!table.layout().is_bounded()) return Eviction{.pass = pass.pass, .shards = {}};
  return PlanShards(table, pass.pass, blocks, pool,
                    [&](uint32_t local, const WrittenRows& written, Eviction::Shard* shard) {
                      RemoveDue(table, local, written, shard);
                      return FindDueOfShard(table, local, pass, written, /*all=*/false, shard);
                    });
}

absl::StatusOr<Eviction> PlanReplica(const SparseTable& table, const DatedPass& pass,
                                     absl::Span<const ValueBlock> blocks,
                                     std::vector<std::vector<Key>> removed, ThreadPool& pool) {
  const bool is_bounded = table.layout().is_bounded();
  if (!is_bounded && removed.empty()) return Eviction{.pass = pass.pass, .shards = {}};
  return PlanShards(table, pass.pass, blocks, pool,
                    [&](uint32_t local, const WrittenRows& written, Eviction::Shard* shard) {
                      if (!removed.empty()) shard->removed = std::move(removed[local]);
                      if (!is_bounded) return absl::OkStatus();
                      return FindDueOfShard(table, local, pass, written, /*all=*/true, shard);
                    });
}

absl::Status FindDue(SparseTable& table, const DatedPass& pass, ThreadPool& pool) {
  for (uint32_t local = 0; local < table.local_shard_num(); ++local) {
    table.SetDue(local, pass.pass, nullptr);
  }
  CISTERN_ASSIGN_OR_RETURN(const Eviction eviction, PlanEviction(table, pass, {}, pool));
  for (uint32_t local = 0; local < eviction.shards.size(); ++local) {
    table.SetDue(local, pass.pass, eviction.shards[local].due);
  }
  return absl::OkStatus();
}

}  // namespace cistern::server
