#include "worker/client/fleet_reader.h"

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "common/base/hash.h"
#include "common/base/machine_limits.h"
#include "common/value/dense_range.h"
#include "common/value/schema.h"
#include "common/value/step_clock.h"
#include "worker/client/connect.h"
#include "worker/client/transfers.h"

namespace cistern {

uint32_t Today() {
  const int64_t days = absl::ToInt64Hours(absl::Now() - absl::UnixEpoch()) / 24;
  return static_cast<uint32_t>(std::max<int64_t>(days, 0));
}

FleetReader::FleetReader(FleetView view, const ClientOptions& options)
    : servers_(std::move(view.servers)),
      options_(options),
      map_(view.map),
      cluster_id_(HashBytes(options.cluster)),
      durable_(view.durable),
      local_state_(view.local_state),
      rows_in_files_(view.rows_in_files),
      clock_(std::move(view.clock)),
      term_(view.term),
      pool_(servers_.size() > 1 ? std::make_unique<ThreadPool>(static_cast<int>(servers_.size()))
                                : nullptr) {}

FleetReader::~FleetReader() = default;

v1::Identity FleetReader::identity() const {
  v1::Identity identity;
  identity.set_cluster_id(cluster_id_);
  identity.set_schema_hash(schema_hash_);
  identity.set_shard_map_hash(map_.hash());
  identity.set_epoch(term_);
  identity.set_secret(secret_);
  return identity;
}

absl::Status FleetReader::SetSchema(const v1::Schema& schema) {
  CISTERN_RETURN_IF_ERROR(CheckSchema(schema));
  std::vector<ValueLayout> layouts;
  for (const v1::TableSpec& table : schema.tables()) {
    CISTERN_ASSIGN_OR_RETURN(ValueLayout layout, ValueLayout::CreateStored(table));
    layouts.push_back(std::move(layout));
  }
  layouts_ = std::move(layouts);
  schema_ = schema;
  schema_hash_ = SchemaHash(schema);
  return absl::OkStatus();
}

absl::Status FleetReader::ForEachServer(
    const std::function<absl::Status(size_t, ControlPlane&)>& call) {
  std::vector<absl::Status> results(servers_.size());
  const auto one = [&](size_t rank) {
    results[rank] =
        AddContext(call(rank, *servers_[rank].control), ServerName(rank, servers_[rank]));
  };
  if (pool_ == nullptr) {
    one(0);
  } else {
    pool_->ParallelFor(servers_.size(), one);
  }
  for (const absl::Status& result : results) CISTERN_RETURN_IF_ERROR(result);
  return absl::OkStatus();
}

absl::Status FleetReader::CheckTable(TableId table) const {
  if (table < layouts_.size()) return absl::OkStatus();
  return absl::NotFoundError(
      absl::StrCat("no sparse table ", table, "; the servers have ", layouts_.size()));
}

absl::Status FleetReader::CheckDenseTable(TableId table) const {
  if (table < static_cast<size_t>(schema_.dense_tables_size())) return absl::OkStatus();
  return absl::NotFoundError(
      absl::StrCat("no dense table ", table, "; the servers have ", schema_.dense_tables_size()));
}

ExchangePolicy FleetReader::policy() const {
  const int cores = std::min(CoreCount(), 4);
  return {.call_timeout = options_.call_timeout,
          .retry_limit = options_.retry_limit,
          .in_flight = std::max(1, options_.in_flight),
          .senders = options_.senders > 0 ? options_.senders : cores};
}

FrameHeader FleetReader::HeaderFor(TableId table, uint32_t stride) const {
  FrameHeader header;
  header.cluster_id = cluster_id_;
  header.schema_hash = schema_hash_;
  header.shard_map_hash = map_.hash();
  header.term = term_;
  header.worker = options_.worker;
  header.table = table;
  header.stride = stride;
  return header;
}

size_t FleetReader::ChunkKeys(TableId table) const {
  const size_t row_bytes = sizeof(Key) + layouts_[table].full_floats() * sizeof(float) + 1;
  return std::max<size_t>(1, options_.chunk_bytes / row_bytes);
}

std::vector<DenseChunk> FleetReader::ChunksOf(TableId table) const {
  const v1::DenseTableSpec& spec = schema_.dense_tables(static_cast<int>(table));
  const uint64_t row_bytes = static_cast<uint64_t>(spec.columns_size()) * sizeof(float);
  const uint64_t rows = std::max<uint64_t>(1, options_.chunk_bytes / row_bytes);
  std::vector<DenseChunk> chunks;
  for (uint32_t server = 0; server < map_.server_num(); ++server) {
    const DenseRange range = DenseRangeOf(spec.rows(), server, map_.server_num());
    for (uint64_t begin = range.begin; begin < range.end; begin += rows) {
      chunks.push_back({server, begin, std::min(begin + rows, range.end)});
    }
  }
  return chunks;
}

absl::Status FleetReader::Pull(TableId table, absl::Span<const Key> keys, bool absent_is_zero,
                               float* values, uint8_t* has_embedx, absl::Span<const Row> rows,
                               PassId pass) {
  CISTERN_RETURN_IF_ERROR(CheckTable(table));
  const KeyRouting routing = RouteKeys(map_, keys, ChunkKeys(table), rows_in_files_);
  FrameHeader header = HeaderFor(table, layouts_[table].full_floats());
  if (absent_is_zero) header.flags |= kAbsentIsZero;
  if (layouts_[table].is_bounded()) header.pass = pass;
  PullTransfer transfer(header, layouts_[table], routing, keys, values, has_embedx, rows);
  return RunExchange(servers_, policy(), transfer);
}

absl::Status FleetReader::PullDense(TableId table, float* values) {
  CISTERN_RETURN_IF_ERROR(CheckDenseTable(table));
  const std::vector<DenseChunk> chunks = ChunksOf(table);
  const auto columns = schema_.dense_tables(static_cast<int>(table)).columns_size();
  PullDenseTransfer transfer(HeaderFor(table, static_cast<uint32_t>(columns)), chunks, values);
  return RunExchange(servers_, policy(), transfer);
}

absl::Status FleetReader::Scan(TableId table, const Visit& visit) {
  return ScanRows(table, 0, visit);
}

absl::Status FleetReader::ScanCached(TableId table, const Visit& visit) {
  return ScanRows(table, kCachedOnly, visit);
}

absl::Status FleetReader::ScanRows(TableId table, uint32_t flags, const Visit& visit) {
  CISTERN_RETURN_IF_ERROR(CheckTable(table));
  const uint32_t stride = layouts_[table].full_floats();
  const RowReader reader(layout(table), clock_, table);
  ValueUnpacker unpack(layouts_[table]);
  for (ShardIndex shard = 0; shard < map_.shard_num(); ++shard) {
    FrameHeader header = HeaderFor(table, stride);
    header.shard = shard;
    header.flags |= flags;
    do {
      ScanTransfer page(header, map_.server(shard));
      CISTERN_RETURN_IF_ERROR(RunExchange(servers_, policy(), page));
      if (page.next_cursor != 0 &&
          ((page.keys.empty() && flags == 0) || page.next_cursor <= header.start)) {
        return absl::InternalError(absl::StrCat(
            ServerName(map_.server(shard), servers_[map_.server(shard)]), ": scanning shard ",
            shard, " does not advance; client and server disagree"));
      }
      for (size_t i = 0; i < page.keys.size(); ++i) {
        float* const value = unpack(page.values.data() + i * stride);
        reader.BringUp(value);
        CISTERN_RETURN_IF_ERROR(visit(shard, page.keys[i], value, page.has_embedx[i] != 0));
      }
      header.start = page.next_cursor;
    } while (header.start != 0);
  }
  return absl::OkStatus();
}

}  // namespace cistern
