// Reads the values of a fleet: pulls rows by key, and scans whole tables.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/base/status.h"
#include "common/base/thread_pool.h"
#include "common/value/shard_map.h"
#include "common/value/value_layout.h"
#include "common/wire/planes.h"
#include "proto/schema.pb.h"
#include "worker/client/exchange.h"

namespace cistern {

struct FleetView;   // connect.h
struct DenseChunk;  // transfers.h

// Of this machine's clock.
uint32_t Today();

struct ClientOptions {
  std::string cluster = "cistern";
  uint32_t worker = 0;               // rank of this worker
  std::string program = "a client";  // names the writer in servers' messages: "cistern train"
  std::string run;                   // the id of the training run, for manifests; empty: none
  bool take_over = false;            // ClaimTerm replaces an active writer
  // The deadline of one call, and how long calls to an unreachable server are retried.
  absl::Duration call_timeout = absl::Seconds(60);
  absl::Duration retry_limit = absl::Seconds(20);
  size_t chunk_bytes = 512 << 10;  // of a data-plane body
  int in_flight = 4;               // data-plane calls per server
  int senders = 0;                 // threads of one transfer; 0: one per core, at most 4
  // What day it is: days since 1970-01-01, UTC. Called by each BeginPass of tables that expire rows
  // by day.
  std::function<uint32_t()> today = Today;
};

// The servers of a fleet, their tables, and the verbs that read them, in the caller's order. Every
// error names the server. ParameterClient adds the verbs that write.
//
// Threads: any thread may call Pull* while the thread of ParameterClient's verbs works.
class FleetReader {
 public:
  FleetReader(const FleetReader&) = delete;
  FleetReader& operator=(const FleetReader&) = delete;

  // The servers' schema (empty without tables), for tools that have no model file.
  const v1::Schema& schema() const { return schema_; }
  const ShardMap& shard_map() const { return map_; }
  // The layout of the values of Pull, Scan and Push, which are floats, and the one in which servers
  // store and send them.
  const ValueLayout& layout(TableId table) const { return layouts_[table].unpacked(); }
  const ValueLayout& stored_layout(TableId table) const { return layouts_[table]; }
  const std::vector<ServerLink>& servers() const { return servers_; }
  // The identity that this client's calls carry.
  v1::Identity identity() const;
  // Whether commits survive the servers' processes.
  bool durable() const { return durable_; }
  // Whether each server keeps its commits in a folder that the others do not see.
  bool local_state() const { return local_state_; }
  // The training steps as of the committed pass (ParameterClient::CommitOptions::clock).
  const v1::StepClock& clock() const { return clock_; }

  // Reads committed values as stored: deferred updates are not applied yet.
  // keys: [n] distinct. values: [n, layout.full_floats()].
  // has_embedx: [n], as in SparseTable::Pull.
  // rows: [n] distinct rows of values and has_embedx, which key i's value goes to; empty: row i.
  // pass: 0, or the pass that will train these rows, which the pass before it does not have. The
  // rows are then those with which it begins, also if that pass is not committed yet: in a bounded
  // table without those that its commit will remove.
  absl::Status Pull(TableId table, absl::Span<const Key> keys, bool absent_is_zero, float* values,
                    uint8_t* has_embedx, absl::Span<const Row> rows = {}, PassId pass = 0);
  // Reads a whole dense table, [rows, columns]. kNotFound if it was never written.
  absl::Status PullDense(TableId table, float* values);

  // Visits every row of a table: shards in ascending order, the rows of a shard in index order.
  // value: [full_floats], with deferred updates applied up to clock().
  using Visit =
      std::function<absl::Status(uint32_t shard, Key, const float* value, bool has_embedx)>;
  absl::Status Scan(TableId table, const Visit& visit);

  // The same for the rows in the memory caches of the servers (server/table/memory_cache.h), the
  // most shown first. kFailedPrecondition: a server has none.
  absl::Status ScanCached(TableId table, const Visit& visit);

  // Calls every server in parallel. Returns the first error, prefixed with the server's name.
  absl::Status ForEachServer(const std::function<absl::Status(size_t rank, ControlPlane&)>& call);

 protected:
  FleetReader(FleetView view, const ClientOptions& options);
  ~FleetReader();

  absl::Status SetSchema(const v1::Schema& schema);
  absl::Status CheckTable(TableId table) const;
  absl::Status CheckDenseTable(TableId table) const;
  ExchangePolicy policy() const;
  // Identity and worker of a frame for `table`.
  FrameHeader HeaderFor(TableId table, uint32_t stride) const;
  // The most keys of `table` in one frame, and its rows cut into frames if it is dense.
  size_t ChunkKeys(TableId table) const;
  std::vector<DenseChunk> ChunksOf(TableId table) const;

  const std::vector<ServerLink> servers_;  // by rank
  const ClientOptions options_;
  const ShardMap map_;
  const uint64_t cluster_id_;

  // Set before the calls that read them (CreateTables comes first).
  v1::Schema schema_;
  uint64_t schema_hash_ = 0;
  std::vector<ValueLayout> layouts_;  // stored
  bool durable_ = false, local_state_ = false, rows_in_files_ = false;
  v1::StepClock clock_;

  std::atomic<uint64_t> term_{0};    // atomic: Pull* on another thread reads it
  std::atomic<uint64_t> secret_{0};  // of the writer's claim: this client's, or worker 0's

 private:
  absl::Status ScanRows(TableId table, uint32_t flags, const Visit& visit);

  const std::unique_ptr<ThreadPool> pool_;  // one thread per server; null for a single server
};

}  // namespace cistern
