#include "server/table/shard_filler.h"

#include "absl/strings/str_cat.h"

namespace cistern {
namespace {

constexpr size_t kBatchRows = 1024;

}  // namespace

ShardFiller::ShardFiller(SparseTable& table, uint32_t local)
    : table_(table), local_(local), shard_(table.shard_map().global_shard(table.rank(), local)) {
  keys_.reserve(kBatchRows);
  values_.reserve(kBatchRows * table.layout().full_floats());
  full_.reserve(kBatchRows);
}

absl::Status ShardFiller::Add(Key key, const float* value, bool full) {
  const ShardIndex shard = table_.shard_map().shard(key);
  if (shard != shard_) {
    return absl::DataLossError(absl::StrCat("key ", key, " is of shard ", shard,
                                            " and not of shard ", shard_, ", whose file this is"));
  }
  if (key == kReservedKey64) {
    return absl::DataLossError(table_.CheckKeys(absl::MakeConstSpan(&key, 1)).message());
  }
  ++rows_;
  keys_.push_back(key);
  values_.insert(values_.end(), value, value + table_.layout().full_floats());
  full_.push_back(full ? 1 : 0);
  if (keys_.size() == kBatchRows) Flush();
  return absl::OkStatus();
}

std::optional<ShardFiller::Repeat> ShardFiller::Finish() {
  Flush();
  return repeat_;
}

void ShardFiller::Flush() {
  if (!repeat_.has_value()) {
    const size_t created = table_.CreateRows(local_, keys_, values_.data(), full_.data());
    if (created < keys_.size()) repeat_ = {rows_ - keys_.size() + created + 1, keys_[created]};
  }
  keys_.clear();
  values_.clear();
  full_.clear();
}

}  // namespace cistern
