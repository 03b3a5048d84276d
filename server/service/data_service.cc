#include "server/service/data_service.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#include "absl/time/clock.h"
#include "common/base/check.h"
#include "server/service/guarded_plane.h"

namespace cistern::server {
namespace {

constexpr size_t kPieceBytes = 256 << 10;  // of a pull's reply: whole rows that fit L2
constexpr size_t kTieredPieceBytes = 4 << 20;
constexpr size_t kPageBytes = 512 << 10;  // of a scan's reply

CallIdentity IdentityOf(const FrameHeader& header) {
  return {header.cluster_id, header.schema_hash, header.shard_map_hash, header.term};
}

// Bytes of a row on the wire: key, cells, and has_embedx.
size_t RowBytes(uint32_t stride) {
  return sizeof(Key) + stride * sizeof(float) + 1;
}

absl::Status CheckStride(const FrameHeader& header, const std::string& table, uint32_t stride) {
  if (header.stride == stride) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "table '", table, "': the frame has ", header.stride, " cells per row, the table ", stride));
}

// Checks that the bytes arrived intact and come from a caller with the writer's secret.
absl::Status CheckBodyHash(const FrameHeader& header, const Frame& request, WriterLease& lease) {
  CISTERN_ASSIGN_OR_RETURN(const uint64_t secret, lease.secret());
  if (BodyHash(request, secret) == header.body_hash) return lease.Check(secret);
  return absl::InvalidArgumentError(absl::StrCat(
      "push ", header.sequence, " of worker ", header.worker,
      ": the bytes do not match their hash: checksum mismatch in transit, or the sender is not a "
      "worker of this pass's writer"));
}

// Reads the next array of the body, whose size ReadHeader has checked.
template <class T>
void ReadArray(FrameReader& body, size_t count, std::vector<T>* out) {
  out->resize(count);
  CISTERN_CHECK(body.Read(out->data(), count * sizeof(T)));
}

// Moves an array into a frame without a copy.
template <class T>
void AppendArray(Frame& frame, std::vector<T> array) {
  auto owner = std::make_shared<const std::vector<T>>(std::move(array));
  frame.Append({reinterpret_cast<const char*>(owner->data()), owner->size() * sizeof(T), owner});
}

}  // namespace

void DataService::Call(FrameKind kind, Frame request, absl::Duration, Done done) {
  const absl::Time begin = absl::Now();
  absl::StatusOr<Frame> reply = Handle(kind, request);
  state_->counters.CountCall(MethodOf(kind), reply.status(), absl::Now() - begin);
  if (!reply.ok()) state_->refusals.Note(FrameKindName(kind), reply.status());
  done(std::move(reply));
}

absl::StatusOr<Frame> DataService::Handle(FrameKind kind, const Frame& request) try {
  FrameReader body(request);
  CISTERN_ASSIGN_OR_RETURN(const FrameHeader header, ReadHeader(body, kind, /*reply=*/false));
  absl::ReaderMutexLock lock(&state_->tables_mutex);
  CISTERN_RETURN_IF_ERROR(state_->Check(IdentityOf(header)));
  if (kind == FrameKind::kPush || kind == FrameKind::kPushDense) {
    CISTERN_RETURN_IF_ERROR(CheckBodyHash(header, request, state_->lease));
  } else {
    CISTERN_RETURN_IF_ERROR(state_->stage.CheckCommitted());
  }
  switch (kind) {
    case FrameKind::kPull:
      return Pull(header, body);
    case FrameKind::kPush:
      return Push(header, body);
    case FrameKind::kPullDense:
      return PullDense(header);
    case FrameKind::kPushDense:
      return PushDense(header, body);
    case FrameKind::kScan:
      return Scan(header);
  }
  return absl::InvalidArgumentError("malformed frame: unknown kind");
} catch (...) {
  return StatusOfException(FrameKindName(kind));
}

absl::StatusOr<Frame> DataService::Pull(const FrameHeader& header, FrameReader& body) {
  CISTERN_ASSIGN_OR_RETURN(const SparseTable* table, state_->store.sparse(header.table));
  const uint32_t stride = table->layout().full_floats();
  CISTERN_RETURN_IF_ERROR(CheckStride(header, table->spec().name(), stride));
  std::vector<Key> keys;
  ReadArray(body, header.count, &keys);
  CISTERN_RETURN_IF_ERROR(table->CheckKeys(keys));

  FrameHeader reply_header = ReplyHeader(header);
  reply_header.count = header.count;
  Frame reply = StartFrame(reply_header);
  std::vector<uint8_t> has_embedx(keys.size());
  const bool absent_is_zero = (header.flags & kAbsentIsZero) != 0;
  // Rows in files are read together, the more the better.
  const size_t piece_bytes = table->tiered() ? kTieredPieceBytes : kPieceBytes;
  const size_t piece_rows = std::max<size_t>(1, piece_bytes / (stride * sizeof(float)));
  for (size_t begin = 0; begin < keys.size(); begin += piece_rows) {
    const size_t rows = std::min(piece_rows, keys.size() - begin);
    char* piece = reply.AppendBuffer(rows * stride * sizeof(float));
    CISTERN_RETURN_IF_ERROR(table->Pull(absl::MakeConstSpan(keys).subspan(begin, rows),
                                        absent_is_zero, reinterpret_cast<float*>(piece),
                                        has_embedx.data() + begin, header.pass));
  }
  AppendArray(reply, std::move(has_embedx));
  state_->counters.CountPull(keys.size(), keys.size() * RowBytes(stride));
  return reply;
}

absl::StatusOr<Frame> DataService::Push(const FrameHeader& header, FrameReader& body) {
  CISTERN_ASSIGN_OR_RETURN(const SparseTable* table, state_->store.sparse(header.table));
  StagedPush push;
  push.removal = (header.flags & kRemoval) != 0;
  CISTERN_RETURN_IF_ERROR(
      CheckStride(header, table->spec().name(), push.removal ? 0 : table->layout().full_floats()));
  push.table = header.table;
  push.body_hash = header.body_hash;
  push.keys = body.TakeArray<Key>(header.count);
  if (!push.removal) {
    push.values = body.TakeArray<float>(size_t{header.count} * header.stride);
    push.has_embedx = body.TakeArray<uint8_t>(header.count);
  }
  CISTERN_RETURN_IF_ERROR(
      state_->stage.Push(header.pass, header.worker, header.sequence, std::move(push)));
  state_->counters.CountPush(header.count, header.count * RowBytes(header.stride));
  return StartFrame(ReplyHeader(header));
}

absl::StatusOr<Frame> DataService::PullDense(const FrameHeader& header) {
  CISTERN_ASSIGN_OR_RETURN(const DenseTable* table, state_->store.dense(header.table));
  CISTERN_RETURN_IF_ERROR(CheckStride(header, table->spec().name(), table->columns()));
  FrameHeader reply_header = ReplyHeader(header);
  reply_header.count = header.count;
  Frame reply = StartFrame(reply_header);
  char* out = reply.AppendBuffer(size_t{header.count} * header.stride * sizeof(float));
  CISTERN_RETURN_IF_ERROR(table->Read(header.start, header.count, reinterpret_cast<float*>(out)));
  return reply;
}

absl::StatusOr<Frame> DataService::PushDense(const FrameHeader& header, FrameReader& body) {
  CISTERN_ASSIGN_OR_RETURN(const DenseTable* table, state_->store.dense(header.table));
  StagedPush push;
  push.dense = true;
  push.gradient = (header.flags & kGradient) != 0;
  CISTERN_RETURN_IF_ERROR(
      CheckStride(header, table->spec().name(), push.gradient ? 1 : table->columns()));
  push.table = header.table;
  push.start = header.start;
  push.body_hash = header.body_hash;
  push.values = body.TakeArray<float>(size_t{header.count} * header.stride);
  CISTERN_RETURN_IF_ERROR(
      state_->stage.Push(header.pass, header.worker, header.sequence, std::move(push)));
  return StartFrame(ReplyHeader(header));
}

namespace {

// The rows of `cached` from `cursor` on, at most `limit`; returns the next cursor, 0 at the end.
// Rows that were removed since they were chosen are left out.
absl::StatusOr<uint64_t> ScanCached(const SparseTable& table,
                                    const std::shared_ptr<const MemoryCache::Keys>& cached,
                                    uint64_t cursor, size_t limit,
                                    const std::function<void(Key, const float*, bool)>& visit) {
  if (cached == nullptr) {
    return WithOptions(
        absl::FailedPreconditionError(
            absl::StrCat("no memory cache of table '", table.spec().name(),
                         "': a server with a cache_rate chooses its rows when a model is loaded, "
                         "and when one is saved in mode batch; the table needs the accessor ctr")),
        {"cistern-server.cache_rate", "save.mode"});
  }
  if (cursor > cached->size()) return absl::OutOfRangeError("the cursor is beyond the cached rows");
  const size_t end = std::min(cached->size(), cursor + limit);
  std::vector<float> value(table.layout().full_floats());
  for (; cursor < end; ++cursor) {
    bool has_embedx = false;
    CISTERN_ASSIGN_OR_RETURN(const bool found,
                             table.Find((*cached)[cursor], value.data(), &has_embedx));
    if (found) visit((*cached)[cursor], value.data(), has_embedx);
  }
  return end == cached->size() ? 0 : end;
}

}  // namespace

absl::StatusOr<Frame> DataService::Scan(const FrameHeader& header) {
  CISTERN_ASSIGN_OR_RETURN(const SparseTable* table, state_->store.sparse(header.table));
  const uint32_t stride = table->layout().full_floats();
  CISTERN_RETURN_IF_ERROR(CheckStride(header, table->spec().name(), stride));
  const ShardMap& map = state_->store.shard_map();
  if (header.shard >= map.shard_num() || map.server(header.shard) != state_->rank) {
    return absl::OutOfRangeError(absl::StrCat("shard ", header.shard, " does not belong to server ",
                                              state_->rank,
                                              "; client and server disagree on the shard map"));
  }
  const size_t page_rows = std::max<size_t>(1, kPageBytes / RowBytes(stride));
  std::vector<Key> keys;
  std::vector<float> values;
  std::vector<uint8_t> has_embedx;
  keys.reserve(page_rows);
  values.reserve(page_rows * stride);
  has_embedx.reserve(page_rows);
  FrameHeader reply_header = ReplyHeader(header);
  const uint32_t local = map.local_index(header.shard);
  const auto add = [&](Key key, const float* value, bool with_embedx) {
    keys.push_back(key);
    values.insert(values.end(), value, value + stride);
    has_embedx.push_back(with_embedx ? 1 : 0);
  };
  if ((header.flags & kCachedOnly) == 0) {
    CISTERN_ASSIGN_OR_RETURN(reply_header.start, table->Scan(local, header.start, page_rows, add));
  } else {
    CISTERN_ASSIGN_OR_RETURN(
        reply_header.start,
        ScanCached(*table, state_->cache.Of(header.table, local), header.start, page_rows, add));
  }
  reply_header.count = static_cast<uint32_t>(keys.size());
  Frame reply = StartFrame(reply_header);
  AppendArray(reply, std::move(keys));
  AppendArray(reply, std::move(values));
  AppendArray(reply, std::move(has_embedx));
  return reply;
}

}  // namespace cistern::server
