// A worker's view of the fleet: keys in, values out, passes committed.
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

struct ClientOptions {
  std::string cluster = "cistern";
  uint32_t worker = 0;               // rank of this worker
  std::string program = "a client";  // who claims, for the servers' messages: "cistern train"
  bool take_over = false;            // claims end a writer that is at work
  // How long one call may take, and how long an unreachable server is retried before giving up.
  absl::Duration call_timeout = absl::Seconds(60);
  absl::Duration retry_limit = absl::Seconds(20);
  size_t chunk_bytes = 512 << 10;  // of a data-plane body
  int in_flight = 4;               // data-plane calls per server
};

// Values of keys, in the caller's order.
//
// Threads: one thread calls the pass verbs (Begin .. Commit); Pull* may run beside them from
// another thread. Every error names the server.
class ParameterClient {
 public:
  // Says hello to every server and checks that ranks 0..n-1, shard map, cluster and committed pass
  // agree. kUnavailable after retry_limit with the servers that do not answer; kFailedPrecondition
  // with what does not agree and how to mend it.
  static absl::StatusOr<std::unique_ptr<ParameterClient>> Connect(std::vector<ServerLink> servers,
                                                                  const ClientOptions& options);
  ~ParameterClient();

  // Creates the tables, or checks that the servers' are the same. Call before anything below.
  absl::Status CreateTables(const v1::Schema& schema);
  // The schema of the servers (empty if they have none): for tools that have no model.
  const v1::Schema& schema() const { return schema_; }
  const ShardMap& shard_map() const { return map_; }
  PassId committed_pass() const { return committed_; }
  const ValueLayout& layout(TableId table) const { return layouts_[table]; }
  const std::vector<ServerLink>& servers() const { return servers_; }
  // The identity that calls of this client carry.
  v1::Identity identity() const;

  // Becomes the only writer: claims the next epoch. Older writers are refused from now on.
  // kFailedPrecondition that names another writer which is at work, unless options.take_over.
  // Servers that missed the newest durable commit catch up, and what was committed in memory only
  // is rolled back to it: after OK all are at manifest().pass.
  absl::Status ClaimEpoch();

  // Whether commits survive the servers' processes.
  bool durable() const { return durable_; }
  // How far training is, as of the committed pass (CommitOptions.clock).
  const v1::StepClock& clock() const { return clock_; }
  // The newest durable commit as of ClaimEpoch or the last durable CommitPass: its pass, its
  // number, and the worker's position in it. Empty (commit 0) if there is none.
  const v1::Manifest& manifest() const { return manifest_; }

  // Several workers of one run: worker 0 claims, begins and commits; the others push and pull under
  // its epoch, and follow where it goes.
  struct Writer {
    uint64_t epoch = 0;
    uint64_t secret = 0;
    PassId committed = 0;
    v1::StepClock clock;
    v1::Manifest manifest;
    std::string Pack() const;
    // kInternal: not what Pack made.
    static absl::StatusOr<Writer> Unpack(const std::string& packed);
  };
  // Of worker 0, after ClaimEpoch or a commit.
  Writer writer() const;
  // Of another worker: goes on as `writer`. (No pass is open then.)
  void Follow(const Writer& writer);
  // The pass that worker 0 has begun, of another worker: for its pushes.
  void JoinPass();
  // All of this worker's pushes of the open pass have been made. CommitPass, of worker 0, comes
  // after this of all the others.
  absl::Status SealPass();

  // The secret by which the workers of a run know each other, on server 0 under the address where
  // worker 0 listens: worker 0 leaves it, the others fetch it (0: it has not come yet).
  absl::Status LeaveRunSecret(const std::string& address, uint64_t secret);
  absl::StatusOr<uint64_t> RunSecret(const std::string& address);

  // Reads committed values, as they are kept: tables that make up missed steps have not yet.
  // keys: [n] distinct. values: [n, layout.full_floats()]. full: [n], as in SparseTable::Pull.
  absl::Status Pull(TableId table, absl::Span<const Key> keys, bool absent_is_zero, float* values,
                    uint8_t* full);
  // Reads a whole dense table: [rows, columns]. kNotFound if it was never written.
  absl::Status PullDense(TableId table, float* values);

  // A pass: Begin, any number of pushes, then Commit (seal, prepare, decide, commit on all
  // servers); or Abort. Each key at most once per pass and table.
  //
  // kAborted from any of these: a server has lost what was staged (it was restarted); nothing of
  // the pass is committed. Claim a new epoch, go back to manifest(), and train the pass again.
  //
  // worker_num: of the workers that push, each of which seals before worker 0 commits.
  absl::Status BeginPass(uint32_t worker_num = 1);
  // Servers that were restarted between passes, as the last BeginPass has found, and so lost
  // nothing of them: "server 1 (127.0.0.1:7701)". Each is told once.
  std::vector<std::string> TakeRestarted();
  absl::Status Push(TableId table, absl::Span<const Key> keys, const float* values,
                    const uint8_t* full);
  absl::Status PushDense(TableId table, const float* values);
  // Gradients [rows] of a dense table with a rule (schema.proto, DenseRule), which the servers
  // apply at the commit, once, to the sum over all workers.
  absl::Status PushDenseGradient(TableId table, const float* gradients);
  // How a pass is committed, on durable servers. (On others the two fields mean nothing.)
  struct CommitOptions {
    // The worker's position after this pass, kept in the manifest: JSON, see
    // worker/train/position.h.
    std::string worker_state;
    // false: in memory only, for the next durable commit to carry; a restart goes back to the last
    // durable one, whatever came after it (commit_every).
    bool durable = true;
    // The steps behind the pass, for tables that make up missed ones (common/value/step_clock.h).
    // Unset: their rows have all been brought up, and steps begin at 1.
    v1::StepClock clock;
  };
  absl::Status CommitPass(const CommitOptions& commit);
  absl::Status CommitPass() { return CommitPass(CommitOptions()); }
  absl::Status AbortPass();

  // Visits every row of a table, shard after shard in ascending order, rows in index order.
  // value: full_floats cells, brought up to clock().
  absl::Status Scan(
      TableId table,
      const std::function<absl::Status(uint32_t shard, Key, const float* value, bool full)>& visit);

  // Reads a saved model (what.name, and how) from the servers' data_dir into servers that hold
  // nothing, and, where they are durable, commits it. reply: the rows of all servers. After an
  // error on durable servers ClaimEpoch brings back the last commit.
  absl::Status Load(const v1::LoadRequest& what, v1::LoadReply* reply);

  // Changes the tables in place (Shrink, UpdateAfterSave) on every server, and, where they are
  // durable, commits that as a pass of its own with the worker's position as it was. `call` sends
  // the request; `changes` goes into it. Where a server was restarted before the commit, all are
  // back at the last commit and the change is made again, a few times; kAborted then. Call it as
  // the only writer: kFailedPrecondition if another one has committed meanwhile.
  using Change = std::function<absl::Status(size_t rank, ControlPlane&, uint64_t changes)>;
  absl::Status ChangeInPlace(const Change& call);

  // Commits what Clear has done as a pass of its own, with the worker's position as it was. Nothing
  // to do where the servers are not durable.
  absl::Status CommitChange();

  // Removes all rows and sets the committed pass, on every server. On durable servers this becomes
  // a commit with the next pass, or CommitChange; kAborted from any verb until then: a server was
  // restarted and has its rows again.
  absl::Status Clear(PassId pass);

  // Calls every server in parallel; the first error wins, with the server's name before it.
  absl::Status ForEachServer(const std::function<absl::Status(size_t rank, ControlPlane&)>& call);

 private:
  ParameterClient(FleetView view, const ClientOptions& options);

  absl::Status SetSchema(const v1::Schema& schema);
  // One try to become the writer, by a claim with `secret`. before: of the claim held until now.
  absl::Status ClaimWith(uint64_t secret, uint64_t before);
  // Waits a moment for a writer that has just ended; an error as ClaimEpoch.
  absl::Status AwaitNoWriter() const;
  absl::StatusOr<uint64_t> Meet(const std::string& address, uint64_t secret);
  absl::Status ReadManifest();
  absl::Status ChangeOnce(const Change& call);
  // Writes the manifest of the open pass on server 0: the commit point.
  absl::Status Decide(const std::vector<v1::PreparePassReply>& prepared,
                      const CommitOptions& commit);
  v1::Manifest MakeManifest(const std::vector<v1::PreparePassReply>& prepared) const;
  absl::Status CheckTable(TableId table) const;
  absl::Status CheckDenseTable(TableId table) const;
  // ForEachServer, each call repeated while its error is retryable: for idempotent verbs.
  absl::Status Repeat(const std::function<absl::Status(size_t rank, ControlPlane&)>& call);
  ExchangePolicy policy() const;
  // Identity, worker and pass of a frame for `table`.
  FrameHeader HeaderFor(TableId table, uint32_t stride) const;
  size_t ChunkKeys(TableId table) const;
  std::vector<DenseChunk> ChunksOf(TableId table) const;
  // base: stride and flags.
  absl::Status PushDenseRows(TableId table, const FrameHeader& base, const float* values);
  // The next sequence number of the server of each call.
  template <class Chunk>
  std::vector<uint64_t> TakeSequences(const std::vector<Chunk>& chunks);

  const std::vector<ServerLink> servers_;  // by rank
  const ClientOptions options_;
  const ShardMap map_;
  const uint64_t cluster_id_;
  const std::unique_ptr<ThreadPool> pool_;  // one thread a server; null for one server

  // Set before the calls that read them (CreateTables comes first).
  v1::Schema schema_;
  uint64_t schema_hash_ = 0;
  std::vector<ValueLayout> layouts_;
  bool durable_ = false;
  v1::StepClock clock_;
  v1::Manifest manifest_;
  uint64_t manifest_xxh3_ = 0;

  std::atomic<uint64_t> epoch_{0};   // pulls beside the thread of the passes read it
  std::atomic<uint64_t> secret_{0};  // of the writer's claim: the own one, or worker 0's

  // Of the thread that calls the pass verbs.
  PassId committed_ = 0, open_ = 0;
  std::vector<uint64_t> sequences_;  // next push, by server
  uint64_t changes_ = 0;             // in place, since the last durable commit
  std::vector<uint64_t> boots_;      // PassReply.boot, by server; 0: not heard of
  std::vector<std::string> restarted_;
};

}  // namespace cistern
