// The data-plane transfers of a worker: keys and values are packed into frames, and replies are
// scattered back into the caller's order. common/wire/frame.h describes the body of each frame.
#pragma once

#include <vector>

#include "absl/types/span.h"
#include "common/base/types.h"
#include "common/value/shard_map.h"
#include "common/value/value_layout.h"
#include "common/wire/frame.h"
#include "worker/client/exchange.h"

namespace cistern {

// The keys of one transfer, sorted by server and shard and cut into calls.
struct KeyRouting {
  // Consecutive keys that travel in one call.
  struct Chunk {
    uint32_t server = 0;
    uint32_t begin = 0, end = 0;  // range of `order`
  };
  std::vector<uint32_t> order;  // [n]: indices into the caller's arrays, by (server, shard)
  std::vector<Chunk> chunks;    // ascending ranges of `order`
};

// One counting sort; keys of a shard keep their relative order, or ascend if `ascending`: then each
// block of a file in which servers look for rows is read by one call, or two. A chunk holds at most
// `chunk_keys` keys. keys: fewer than 2^32.
KeyRouting RouteKeys(const ShardMap& map, absl::Span<const Key> keys, size_t chunk_keys,
                     bool ascending = false);

// Consecutive rows of a dense table that travel in one call.
struct DenseChunk {
  uint32_t server = 0;
  uint64_t begin = 0, end = 0;
};

// Sends keys and stores the unpacked value of keys[i] at row rows[i], or at row i if `rows` is
// empty. Borrows all constructor arguments.
class PullTransfer : public Transfer {
 public:
  // header: the identity, table, stride and flags of every call. stored: the layout of the values
  // in frames.
  PullTransfer(const FrameHeader& header, const ValueLayout& stored, const KeyRouting& routing,
               absl::Span<const Key> keys, float* values, uint8_t* has_embedx,
               absl::Span<const Row> rows = {})
      : header_(header),
        stored_(stored),
        routing_(routing),
        keys_(keys),
        rows_(rows),
        values_(values),
        has_embedx_(has_embedx) {}

  FrameKind kind() const override { return FrameKind::kPull; }
  size_t call_num() const override { return routing_.chunks.size(); }
  size_t server(size_t i) const override { return routing_.chunks[i].server; }
  Frame Request(size_t i) const override;
  absl::Status Reply(size_t i, const FrameHeader& header, FrameReader& body) override;

 private:
  const FrameHeader header_;
  const ValueLayout& stored_;
  const KeyRouting& routing_;
  const absl::Span<const Key> keys_;
  const absl::Span<const Row> rows_;
  float* const values_;
  uint8_t* const has_embedx_;
};

// Sends new values, which it packs: that of keys[i] is in row rows[i], or in row i if `rows` is
// empty. Borrows all constructor arguments.
class PushTransfer : public Transfer {
 public:
  // header: also the pass and the worker. stored: the layout of the values in frames. secret: the
  // writer's. sequences: one per chunk.
  PushTransfer(const FrameHeader& header, const ValueLayout& stored, uint64_t secret,
               const KeyRouting& routing, std::vector<uint64_t> sequences,
               absl::Span<const Key> keys, const float* values, const uint8_t* has_embedx,
               absl::Span<const Row> rows = {})
      : header_(header),
        stored_(stored),
        secret_(secret),
        routing_(routing),
        sequences_(std::move(sequences)),
        keys_(keys),
        rows_(rows),
        values_(values),
        has_embedx_(has_embedx) {}

  FrameKind kind() const override { return FrameKind::kPush; }
  size_t call_num() const override { return routing_.chunks.size(); }
  size_t server(size_t i) const override { return routing_.chunks[i].server; }
  Frame Request(size_t i) const override;
  absl::Status Reply(size_t i, const FrameHeader& header, FrameReader& body) override;

 private:
  const FrameHeader header_;
  const ValueLayout& stored_;
  const uint64_t secret_;
  const KeyRouting& routing_;
  const std::vector<uint64_t> sequences_;
  const absl::Span<const Key> keys_;
  const absl::Span<const Row> rows_;
  const float* const values_;
  const uint8_t* const has_embedx_;
};

// Reads a dense table, one range of rows per call. header.stride: the number of columns.
class PullDenseTransfer : public Transfer {
 public:
  PullDenseTransfer(const FrameHeader& header, const std::vector<DenseChunk>& chunks, float* values)
      : header_(header), chunks_(chunks), values_(values) {}

  FrameKind kind() const override { return FrameKind::kPullDense; }
  size_t call_num() const override { return chunks_.size(); }
  size_t server(size_t i) const override { return chunks_[i].server; }
  Frame Request(size_t i) const override;
  absl::Status Reply(size_t i, const FrameHeader& header, FrameReader& body) override;

 private:
  const FrameHeader header_;
  const std::vector<DenseChunk>& chunks_;
  float* const values_;
};

class PushDenseTransfer : public Transfer {
 public:
  // header, secret, sequences: as in PushTransfer.
  PushDenseTransfer(const FrameHeader& header, uint64_t secret,
                    const std::vector<DenseChunk>& chunks, std::vector<uint64_t> sequences,
                    const float* values)
      : header_(header),
        secret_(secret),
        chunks_(chunks),
        sequences_(std::move(sequences)),
        values_(values) {}

  FrameKind kind() const override { return FrameKind::kPushDense; }
  size_t call_num() const override { return chunks_.size(); }
  size_t server(size_t i) const override { return chunks_[i].server; }
  Frame Request(size_t i) const override;
  absl::Status Reply(size_t i, const FrameHeader& header, FrameReader& body) override;

 private:
  const FrameHeader header_;
  const uint64_t secret_;
  const std::vector<DenseChunk>& chunks_;
  const std::vector<uint64_t> sequences_;
  const float* const values_;
};

// Reads one page of one shard; after the exchange the fields hold the page.
class ScanTransfer : public Transfer {
 public:
  // header: also the shard, and the cursor in `start`.
  ScanTransfer(const FrameHeader& header, size_t server) : header_(header), server_(server) {}

  FrameKind kind() const override { return FrameKind::kScan; }
  size_t call_num() const override { return 1; }
  size_t server(size_t) const override { return server_; }
  Frame Request(size_t i) const override;
  absl::Status Reply(size_t i, const FrameHeader& header, FrameReader& body) override;

  std::vector<Key> keys;
  std::vector<float> values;
  std::vector<uint8_t> has_embedx;
  uint64_t next_cursor = 0;

 private:
  const FrameHeader header_;
  const size_t server_;
};

}  // namespace cistern
