#include "server/table/shard_filler.h"

#include "absl/strings/str_cat.h"

namespace cistern::server {
namespace {

constexpr size_t kBatchRows = 1024;

}  // namespace

ShardFiller::ShardFiller(SparseTable& table, uint32_t local, uint64_t expected)
    : table_(table),
      local_(local),
      shard_(table.shard_map().global_shard(table.rank(), local)),
      expected_(expected) {}

absl::Status ShardFiller::Add(Key key, const float* value, bool has_embedx) {
  const ShardIndex shard = table_.shard_map().shard(key);
  if (shard != shard_) {
    return absl::DataLossError(absl::StrCat("key ", key, " belongs to shard ", shard,
                                            ", not to shard ", shard_, ", whose file this is"));
  }
  if (key == kReservedKey64) {
    return absl::DataLossError(table_.CheckKeys(absl::MakeConstSpan(&key, 1)).message());
  }
  if (rows_++ == 0) table_.Expect(local_, expected_);
  batch_.Add(key, value, table_.layout().full_floats(), has_embedx);
  if (batch_.size() == kBatchRows) Flush();
  return absl::OkStatus();
}

std::optional<ShardFiller::Repeat> ShardFiller::Finish() {
  Flush();
  return repeat_;
}

void ShardFiller::Flush() {
  if (!repeat_.has_value()) {
    const size_t created =
        table_.CreateRows(local_, batch_.keys, batch_.values.data(), batch_.has_embedx.data());
    if (created < batch_.size()) {
      repeat_ = {rows_ - batch_.size() + created + 1, batch_.keys[created]};
    }
  }
  batch_.Clear();
}

}  // namespace cistern::server
