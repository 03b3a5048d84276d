// The data verbs of ParameterClient: pull, push and scan.
#include <algorithm>
#include <thread>

#include "common/value/dense_range.h"
#include "common/value/step_clock.h"
#include "worker/client/parameter_client.h"
#include "worker/client/transfers.h"

namespace cistern {

absl::Status ParameterClient::CheckTable(TableId table) const {
  if (table < layouts_.size()) return absl::OkStatus();
  return absl::NotFoundError(
      absl::StrCat("no sparse table ", table, "; the servers have ", layouts_.size()));
}

absl::Status ParameterClient::CheckDenseTable(TableId table) const {
  if (table < static_cast<size_t>(schema_.dense_tables_size())) return absl::OkStatus();
  return absl::NotFoundError(
      absl::StrCat("no dense table ", table, "; the servers have ", schema_.dense_tables_size()));
}

ExchangePolicy ParameterClient::policy() const {
  const int cores = static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1u, 4u));
  return {.call_timeout = options_.call_timeout,
          .retry_limit = options_.retry_limit,
          .in_flight = std::max(1, options_.in_flight),
          .senders = options_.senders > 0 ? options_.senders : cores};
}

FrameHeader ParameterClient::HeaderFor(TableId table, uint32_t stride) const {
  FrameHeader header;
  header.cluster_id = cluster_id_;
  header.schema_hash = schema_hash_;
  header.shard_map_hash = map_.hash();
  header.epoch = epoch_;
  header.worker = options_.worker;
  header.table = table;
  header.stride = stride;
  return header;
}

size_t ParameterClient::ChunkKeys(TableId table) const {
  const size_t row_bytes = sizeof(Key) + layouts_[table].full_floats() * sizeof(float) + 1;
  return std::max<size_t>(1, options_.chunk_bytes / row_bytes);
}

std::vector<DenseChunk> ParameterClient::ChunksOf(TableId table) const {
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

template <class Chunk>
std::vector<uint64_t> ParameterClient::TakeSequences(const std::vector<Chunk>& chunks) {
  std::vector<uint64_t> sequences;
  sequences.reserve(chunks.size());
  for (const Chunk& chunk : chunks) sequences.push_back(sequences_[chunk.server]++);
  return sequences;
}

absl::Status ParameterClient::Pull(TableId table, absl::Span<const Key> keys, bool absent_is_zero,
                                   float* values, uint8_t* has_embedx) {
  CISTERN_RETURN_IF_ERROR(CheckTable(table));
  const KeyRouting routing = RouteKeys(map_, keys, ChunkKeys(table));
  FrameHeader header = HeaderFor(table, layouts_[table].full_floats());
  if (absent_is_zero) header.flags |= kAbsentIsZero;
  PullTransfer transfer(header, routing, keys, values, has_embedx);
  return RunExchange(servers_, policy(), transfer);
}

absl::Status ParameterClient::Push(TableId table, absl::Span<const Key> keys, const float* values,
                                   const uint8_t* has_embedx) {
  CISTERN_RETURN_IF_ERROR(CheckTable(table));
  const KeyRouting routing = RouteKeys(map_, keys, ChunkKeys(table));
  FrameHeader header = HeaderFor(table, layouts_[table].full_floats());
  header.pass = open_;
  PushTransfer transfer(header, secret_, routing, TakeSequences(routing.chunks), keys, values,
                        has_embedx);
  return RunExchange(servers_, policy(), transfer, &restarted_);
}

absl::Status ParameterClient::PullDense(TableId table, float* values) {
  CISTERN_RETURN_IF_ERROR(CheckDenseTable(table));
  const std::vector<DenseChunk> chunks = ChunksOf(table);
  const auto columns = schema_.dense_tables(static_cast<int>(table)).columns_size();
  PullDenseTransfer transfer(HeaderFor(table, static_cast<uint32_t>(columns)), chunks, values);
  return RunExchange(servers_, policy(), transfer);
}

absl::Status ParameterClient::PushDense(TableId table, const float* values) {
  CISTERN_RETURN_IF_ERROR(CheckDenseTable(table));
  const auto columns = schema_.dense_tables(static_cast<int>(table)).columns_size();
  return PushDenseRows(table, HeaderFor(table, static_cast<uint32_t>(columns)), values);
}

absl::Status ParameterClient::PushDenseGradient(TableId table, const float* gradients) {
  CISTERN_RETURN_IF_ERROR(CheckDenseTable(table));
  FrameHeader header = HeaderFor(table, 1);
  header.flags |= kGradient;
  return PushDenseRows(table, header, gradients);
}

absl::Status ParameterClient::PushDenseRows(TableId table, const FrameHeader& base,
                                            const float* values) {
  const std::vector<DenseChunk> chunks = ChunksOf(table);
  FrameHeader header = base;
  header.pass = open_;
  PushDenseTransfer transfer(header, secret_, chunks, TakeSequences(chunks), values);
  return RunExchange(servers_, policy(), transfer, &restarted_);
}

absl::Status ParameterClient::Scan(TableId table, const Visit& visit) {
  return ScanRows(table, 0, visit);
}

absl::Status ParameterClient::ScanCached(TableId table, const Visit& visit) {
  return ScanRows(table, kCachedOnly, visit);
}

absl::Status ParameterClient::ScanRows(TableId table, uint32_t flags, const Visit& visit) {
  CISTERN_RETURN_IF_ERROR(CheckTable(table));
  const uint32_t stride = layouts_[table].full_floats();
  const RowReader reader(layouts_[table], clock_, table);
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
        float* value = page.values.data() + i * stride;
        reader.BringUp(value);
        CISTERN_RETURN_IF_ERROR(visit(shard, page.keys[i], value, page.has_embedx[i] != 0));
      }
      header.start = page.next_cursor;
    } while (header.start != 0);
  }
  return absl::OkStatus();
}

}  // namespace cistern
