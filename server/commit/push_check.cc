#include "server/commit/push_check.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/base/hash.h"

namespace cistern::server {
namespace {

constexpr uint32_t kFloatExponent = 0x7F800000;
constexpr uint32_t kLowerExponent = kFloatExponent >> 16;  // of a bfloat16 in the lower half
constexpr uint32_t kDoubleExponent = 0x7FF00000;           // in the upper half, the second cell
constexpr size_t kChunkCells = 1024;

absl::Status NotANumber(const std::string& table, const std::string& where, size_t cell) {
  return absl::InvalidArgumentError(absl::StrCat("table '", table, "': the value of ", where,
                                                 " has NaN or Inf in cell ", cell,
                                                 "; training has diverged; nothing was stored"));
}

absl::Status WrongStride(const std::string& table, size_t cells, size_t rows, size_t stride) {
  return absl::InvalidArgumentError(absl::StrCat("table '", table, "': ", cells, " cells for ",
                                                 rows, " rows of ", stride, " cells each"));
}

absl::Status CheckSparse(const TableStore& store, const StagedPush& push) {
  const absl::StatusOr<SparseTable*> found = store.sparse(push.table);
  if (!found.ok()) return WithCode(found.status(), absl::StatusCode::kInvalidArgument);
  const SparseTable& table = **found;
  const std::string& name = table.spec().name();
  if (push.removal) return table.CheckKeys(push.keys);
  const size_t rows = push.keys.size(), stride = table.layout().full_floats();
  if (push.values.size() != rows * stride || push.has_embedx.size() != rows) {
    return WrongStride(name, push.values.size(), rows, stride);
  }
  if (std::any_of(push.has_embedx.begin(), push.has_embedx.end(),
                  [](uint8_t has_embedx) { return has_embedx > 1; })) {
    return absl::InvalidArgumentError(
        absl::StrCat("table '", name, "': `has_embedx` of a pushed value is neither 0 nor 1"));
  }
  CISTERN_RETURN_IF_ERROR(table.CheckKeys(push.keys));
  const size_t bad = FiniteScan(table.layout()).FirstBad(push.values);
  if (bad == push.values.size()) return absl::OkStatus();
  return NotANumber(name, absl::StrCat("key ", push.keys[bad / stride]), bad % stride);
}

absl::Status CheckDense(const TableStore& store, const StagedPush& push) {
  const absl::StatusOr<DenseTable*> found = store.dense(push.table);
  if (!found.ok()) return WithCode(found.status(), absl::StatusCode::kInvalidArgument);
  const DenseTable& table = **found;
  const std::string& name = table.spec().name();
  if (push.gradient && table.spec().rule().kind() == v1::DenseRule::NONE) {
    return absl::InvalidArgumentError(absl::StrCat(
        "dense table '", name, "' has no rule for gradients; push values, or give it a rule"));
  }
  const uint32_t columns = push.gradient ? 1 : table.columns();
  const size_t rows = push.values.size() / columns;
  if (push.values.size() % columns != 0) {
    return WrongStride(name, push.values.size(), rows, columns);
  }
  CISTERN_RETURN_IF_ERROR(table.CheckRange(push.start, rows));
  const size_t bad = FiniteScan(columns).FirstBad(push.values);
  if (bad == push.values.size()) return absl::OkStatus();
  return NotANumber(name, absl::StrCat("row ", push.start + bad / columns), bad % columns);
}

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

std::optional<Key> FindInShard(absl::Span<const ValueBlock> blocks,
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
  return std::nullopt;
}

}  // namespace

absl::Status CheckPush(const TableStore& store, const StagedPush& push) {
  return push.dense ? CheckDense(store, push) : CheckSparse(store, push);
}

FiniteScan::FiniteScan(const ValueLayout& layout)
    : mask_(layout.full_floats(), kFloatExponent), bad_(mask_) {
  const auto ignore = [this](uint32_t cell) {
    mask_[cell] = 0;
    bad_[cell] = 1;  // never equal
  };
  for (const ValueField& field : layout.fields()) {
    if (field.type == CellType::kFloat) continue;
    if (field.type == CellType::kBfloat16) {
      // A cell holds two: the upper one is checked as a float is, the lower one by lower_.
      if (lower_.empty()) lower_.resize(mask_.size());
      std::fill_n(lower_.begin() + field.first, field.cells(), kLowerExponent);
      continue;
    }
    ignore(field.first);
    ignore(field.first + 1);
    if (field.type == CellType::kDouble) {
      mask_[field.first + 1] = bad_[field.first + 1] = kDoubleExponent;
    }
  }
  Repeat();
}

FiniteScan::FiniteScan(uint32_t columns) : mask_(columns, kFloatExponent), bad_(mask_) {
  Repeat();
}

size_t FiniteScan::FirstBad(absl::Span<const float> cells) const {
  for (size_t begin = 0; begin < cells.size(); begin += mask_.size()) {
    const size_t count = std::min(mask_.size(), cells.size() - begin);
    const size_t bad = FirstBadOfChunk(cells.data() + begin, count);
    if (bad < count) return begin + bad;
  }
  return cells.size();
}

void FiniteScan::Repeat() {
  const size_t stride = mask_.size();
  const size_t rows = std::max<size_t>(1, kChunkCells / stride);
  for (std::vector<uint32_t>* pattern : {&mask_, &bad_, &lower_}) {
    if (pattern->empty()) continue;
    pattern->resize(rows * stride);
    for (size_t i = stride; i < pattern->size(); ++i) (*pattern)[i] = (*pattern)[i - stride];
  }
}

size_t FiniteScan::FirstBadOfChunk(const float* cells, size_t count) const {
  const auto bits_of = [&](size_t i) {
    uint32_t bits;
    std::memcpy(&bits, cells + i, sizeof(bits));
    return bits;
  };
  const auto is_bad = [&](size_t i) { return (bits_of(i) & mask_[i]) == bad_[i]; };
  const auto lower_is_bad = [&](size_t i) { return (bits_of(i) & lower_[i]) == kLowerExponent; };
  // Branch-free, so that the loops vectorize.
  uint32_t any = 0;
  for (size_t i = 0; i < count; ++i) any |= is_bad(i);
  if (!lower_.empty()) {
    for (size_t i = 0; i < count; ++i) any |= lower_is_bad(i);
  }
  if (any == 0) return count;
  size_t i = 0;
  while (!is_bad(i) && (lower_.empty() || !lower_is_bad(i))) ++i;
  return i;
}

std::optional<Key> FindDuplicateKey(const ShardMap& map, uint32_t local_shard_num,
                                    absl::Span<const ValueBlock> blocks, ThreadPool& pool) {
  const auto ranges = RangesByShard(map, local_shard_num, blocks);
  std::vector<std::optional<Key>> found(local_shard_num);
  pool.ParallelFor(local_shard_num,
                   [&](size_t local) { found[local] = FindInShard(blocks, ranges[local]); });
  for (const std::optional<Key>& key : found) {
    if (key.has_value()) return key;
  }
  return std::nullopt;
}

}  // namespace cistern::server
