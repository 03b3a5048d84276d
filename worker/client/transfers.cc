#include "worker/client/transfers.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "common/base/check.h"
#include "common/base/prefetch.h"

namespace cistern {
namespace {

FrameHeader HeaderOf(const FrameHeader& base, FrameKind kind, uint64_t count) {
  FrameHeader header = base;
  header.kind = static_cast<uint16_t>(kind);
  header.count = static_cast<uint32_t>(count);
  return header;
}

// Reserves space for the header; Seal writes it once the body is complete.
char* AppendHeader(Frame& frame) {
  return frame.AppendBuffer(sizeof(FrameHeader));
}

void Seal(FrameHeader header, uint64_t secret, char* place, const Frame& frame) {
  header.body_hash = BodyHash(frame, secret);
  std::memcpy(place, &header, sizeof(header));
}

absl::Status WrongReply(const FrameHeader& reply, uint64_t count, uint32_t stride) {
  return absl::InternalError(absl::StrCat(
      "the reply to a ", FrameKindName(static_cast<FrameKind>(reply.kind)), " of ", count,
      " times stride ", stride, " has shape ", reply.count, " times stride ", reply.stride));
}

absl::Status CheckShape(const FrameHeader& reply, uint64_t count, uint32_t stride) {
  if (reply.count == count && reply.stride == stride) return absl::OkStatus();
  return WrongReply(reply, count, stride);
}

// The rows of a transfer lie anywhere in a large table: they are prefetched this many rows ahead.
constexpr size_t kAhead = 8;

// Gathers values into a contiguous array, packed: value k is that in row rows[order[k]], or in row
// order[k] if `rows` is empty. out: float-aligned.
void GatherValues(const ValueLayout& stored, absl::Span<const uint32_t> order,
                  absl::Span<const Row> rows, const float* values, char* out) {
  const size_t stride = stored.unpacked().full_floats(), bytes = stride * sizeof(float);
  const size_t packed = stored.full_floats() * sizeof(float);
  const auto row = [&](size_t k) { return rows.empty() ? order[k] : rows[order[k]]; };
  for (size_t k = 0; k < order.size(); ++k) {
    if (k + kAhead < order.size()) PrefetchRow<0>(values + row(k + kAhead) * stride, bytes);
    const float* const value = values + row(k) * stride;
    if (stored.is_packed()) {
      stored.Pack(value, reinterpret_cast<float*>(out + k * packed));
    } else {
      std::memcpy(out + k * packed, value, packed);
    }
  }
}

absl::Span<const uint32_t> OrderOf(const KeyRouting& routing, const KeyRouting::Chunk& chunk) {
  return absl::MakeSpan(routing.order).subspan(chunk.begin, chunk.end - chunk.begin);
}

void GatherKeys(absl::Span<const uint32_t> order, absl::Span<const Key> keys, char* out) {
  Key* packed = reinterpret_cast<Key*>(out);  // aligned by AppendBuffer
  for (size_t k = 0; k < order.size(); ++k) packed[k] = keys[order[k]];
}

}  // namespace

KeyRouting RouteKeys(const ShardMap& map, absl::Span<const Key> keys, size_t chunk_keys,
                     bool ascending) {
  CISTERN_CHECK(keys.size() < std::numeric_limits<uint32_t>::max() && chunk_keys > 0);
  const uint32_t shard_num = map.shard_num();

  // place[shard]: first the number of keys of the shard, then the index of its next key in `order`.
  std::vector<uint16_t> shards(keys.size());
  std::vector<uint32_t> place(shard_num, 0);
  for (size_t i = 0; i < keys.size(); ++i) {
    const ShardIndex shard = map.shard(keys[i]);
    shards[i] = static_cast<uint16_t>(shard);
    ++place[shard];
  }

  KeyRouting routing;
  uint32_t next = 0;
  for (uint32_t server = 0; server < map.server_num(); ++server) {
    const uint32_t server_begin = next;
    for (ShardIndex shard = server; shard < shard_num; shard += map.server_num()) {
      const uint32_t count = place[shard];
      place[shard] = next;
      next += count;
    }
    for (uint64_t begin = server_begin; begin < next; begin += chunk_keys) {
      const uint64_t end = std::min<uint64_t>(begin + chunk_keys, next);
      routing.chunks.push_back({server, static_cast<uint32_t>(begin), static_cast<uint32_t>(end)});
    }
  }

  routing.order.resize(keys.size());
  for (size_t i = 0; i < keys.size(); ++i) {
    routing.order[place[shards[i]]++] = static_cast<uint32_t>(i);
  }
  if (ascending) {
    std::vector<std::pair<Key, uint32_t>> of_shard;
    for (uint32_t begin = 0, end; begin < keys.size(); begin = end) {
      end = place[shards[routing.order[begin]]];  // by now the end of each shard
      of_shard.clear();
      for (uint32_t i = begin; i < end; ++i) {
        of_shard.emplace_back(keys[routing.order[i]], routing.order[i]);
      }
      std::sort(of_shard.begin(), of_shard.end());
      for (uint32_t i = begin; i < end; ++i) routing.order[i] = of_shard[i - begin].second;
    }
  }
  return routing;
}

Frame PullTransfer::Request(size_t i) const {
  const absl::Span<const uint32_t> order = OrderOf(routing_, routing_.chunks[i]);
  Frame frame = StartFrame(HeaderOf(header_, kind(), order.size()));
  GatherKeys(order, keys_, frame.AppendBuffer(order.size() * sizeof(Key)));
  return frame;
}

absl::Status PullTransfer::Reply(size_t i, const FrameHeader& header, FrameReader& body) {
  const absl::Span<const uint32_t> order = OrderOf(routing_, routing_.chunks[i]);
  CISTERN_RETURN_IF_ERROR(CheckShape(header, order.size(), header_.stride));
  const size_t stride = stored_.unpacked().full_floats(), row_bytes = stride * sizeof(float);
  const auto row = [&](size_t k) { return rows_.empty() ? order[k] : rows_[order[k]]; };
  std::vector<float> packed(stored_.is_packed() ? header_.stride : 0);
  // ReadHeader has checked the length of the body.
  for (size_t k = 0; k < order.size(); ++k) {
    if (k + kAhead < order.size()) PrefetchRow<1>(values_ + row(k + kAhead) * stride, row_bytes);
    float* const value = values_ + row(k) * stride;
    if (packed.empty()) {
      CISTERN_CHECK(body.Read(value, row_bytes));
    } else {
      CISTERN_CHECK(body.Read(packed.data(), packed.size() * sizeof(float)));
      stored_.Unpack(packed.data(), value);
    }
  }
  for (size_t k = 0; k < order.size(); ++k) CISTERN_CHECK(body.Read(has_embedx_ + row(k), 1));
  return absl::OkStatus();
}

Frame PushTransfer::Request(size_t i) const {
  const absl::Span<const uint32_t> order = OrderOf(routing_, routing_.chunks[i]);
  const size_t key_bytes = order.size() * sizeof(Key);
  const size_t value_bytes = order.size() * header_.stride * sizeof(float);
  Frame frame;
  char* place = AppendHeader(frame);
  char* bytes = frame.AppendBuffer(key_bytes + value_bytes + order.size());
  GatherKeys(order, keys_, bytes);
  if (value_bytes > 0) GatherValues(stored_, order, rows_, values_, bytes + key_bytes);
  char* has_embedx = bytes + key_bytes + value_bytes;
  for (size_t k = 0; k < order.size(); ++k) {
    has_embedx[k] = static_cast<char>(has_embedx_[rows_.empty() ? order[k] : rows_[order[k]]]);
  }

  FrameHeader header = HeaderOf(header_, kind(), order.size());
  header.sequence = sequences_[i];
  Seal(header, secret_, place, frame);
  return frame;
}

absl::Status PushTransfer::Reply(size_t, const FrameHeader&, FrameReader&) {
  return absl::OkStatus();
}

Frame PullDenseTransfer::Request(size_t i) const {
  FrameHeader header = HeaderOf(header_, kind(), chunks_[i].end - chunks_[i].begin);
  header.start = chunks_[i].begin;
  return StartFrame(header);
}

absl::Status PullDenseTransfer::Reply(size_t i, const FrameHeader& header, FrameReader& body) {
  const uint64_t rows = chunks_[i].end - chunks_[i].begin;
  CISTERN_RETURN_IF_ERROR(CheckShape(header, rows, header_.stride));
  CISTERN_CHECK(body.Read(values_ + chunks_[i].begin * header_.stride,
                          rows * header_.stride * sizeof(float)));
  return absl::OkStatus();
}

Frame PushDenseTransfer::Request(size_t i) const {
  const uint64_t rows = chunks_[i].end - chunks_[i].begin;
  FrameHeader header = HeaderOf(header_, kind(), rows);
  header.start = chunks_[i].begin;
  header.sequence = sequences_[i];
  Frame frame;
  char* place = AppendHeader(frame);
  frame.AppendBytes(values_ + chunks_[i].begin * header_.stride,
                    rows * header_.stride * sizeof(float));
  Seal(header, secret_, place, frame);
  return frame;
}

absl::Status PushDenseTransfer::Reply(size_t, const FrameHeader&, FrameReader&) {
  return absl::OkStatus();
}

Frame ScanTransfer::Request(size_t) const {
  return StartFrame(HeaderOf(header_, kind(), 0));
}

absl::Status ScanTransfer::Reply(size_t, const FrameHeader& header, FrameReader& body) {
  if (header.stride != header_.stride || header.shard != header_.shard) {
    return WrongReply(header, header.count, header_.stride);
  }
  keys.resize(header.count);
  values.resize(size_t{header.count} * header.stride);
  has_embedx.resize(header.count);
  CISTERN_CHECK(body.Read(keys.data(), keys.size() * sizeof(Key)));
  CISTERN_CHECK(body.Read(values.data(), values.size() * sizeof(float)));
  CISTERN_CHECK(body.Read(has_embedx.data(), has_embedx.size()));
  next_cursor = header.start;
  return absl::OkStatus();
}

}  // namespace cistern
