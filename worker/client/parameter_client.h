// A worker's client of the fleet: pulls and pushes values by key, and commits passes.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "worker/client/fleet_reader.h"

namespace cistern {

// Reads and writes values by key, in the caller's order, on all servers of a fleet. Every error
// names the server.
//
// Threads: one thread calls the pass verbs (Begin .. Commit); another may call Pull* meanwhile.
class ParameterClient : public FleetReader {
 public:
  // Sends Hello to every server and checks that ranks 0..n-1, shard map, cluster and committed pass
  // agree. kUnavailable after retry_limit names the servers that do not answer;
  // kFailedPrecondition names the mismatch and its fix.
  static absl::StatusOr<std::unique_ptr<ParameterClient>> Connect(std::vector<ServerLink> servers,
                                                                  const ClientOptions& options);
  ~ParameterClient();

  // Creates the tables, or checks that the servers' tables have this schema. Call it before
  // anything below.
  absl::Status CreateTables(const v1::Schema& schema);
  PassId committed_pass() const { return committed_; }

  // Becomes the only writer: claims the next term. From now on servers refuse older writers.
  // kFailedPrecondition names another active writer, unless options.take_over is set.
  // Servers that missed the newest durable commit catch up to it, and commits that exist in memory
  // only are rolled back to it: after OK all servers are at manifest().pass.
  absl::Status ClaimTerm();

  // The newest durable commit as of ClaimTerm or the last durable CommitPass: its pass, its
  // number, and the worker's position. Empty (commit 0) before the first durable commit.
  const v1::Manifest& manifest() const { return manifest_; }
  uint64_t manifest_xxh3() const { return manifest_xxh3_; }
  // The days of the passes up to committed_pass(), if a table expires rows by day
  // (common/value/pass_days.h); worker 0 alone knows them.
  const v1::PassDays& days() const { return days_; }

  // The writer state that the workers of a run share. Worker 0 claims, begins and commits; the
  // others push and pull under its term, and follow its state.
  struct Writer {
    uint64_t term = 0;
    uint64_t secret = 0;
    PassId committed = 0;
    v1::StepClock clock;
    v1::Manifest manifest;
    std::string Pack() const;
    // kInternal if `packed` does not come from Pack.
    static absl::StatusOr<Writer> Unpack(const std::string& packed);
  };
  // Worker 0: the state to follow, after ClaimTerm or a commit.
  Writer writer() const;
  // Other workers: adopts the state of `writer`. No pass is open afterwards.
  void Follow(const Writer& writer);
  // Other workers: joins the pass that worker 0 has begun, before this worker pushes.
  void JoinPass();
  // Declares that this worker has made all its pushes of the open pass. Worker 0 calls CommitPass
  // only after all other workers have sealed.
  absl::Status SealPass();

  // The run secret authenticates the workers of a run to each other. Server 0 keeps it under the
  // address where worker 0 listens: worker 0 stores it, the others read it (0: not stored yet).
  absl::Status StoreRunSecret(const std::string& address, uint64_t secret);
  absl::StatusOr<uint64_t> RunSecret(const std::string& address);

  // A pass is Begin, any number of pushes, then Commit (seal, prepare, decide, commit on all
  // servers) or Abort. Push each key at most once per pass and table.
  //
  // kAborted from any of these: a server was restarted and has lost its staged pushes; nothing of
  // the pass is committed. Claim a new term, go back to manifest(), and train the pass again.
  //
  // worker_num: the number of workers that push; each seals before worker 0 commits. The day of the
  // pass is that of this call (ClientOptions::today), even if it commits on the next one.
  absl::Status BeginPass(uint32_t worker_num = 1);
  // Begins a pass by which the servers hold what another fleet held after its pass `pass`, or later
  // if that is in the past here. Rows are pushed with their last pass; PushRemoved removes rows;
  // the bounds of tables remove none. days: those of the other fleet's passes; empty: not known,
  // all rows count as before. The commit must be durable where servers are.
  absl::Status BeginReplica(PassId pass, const v1::PassDays& days);
  // What the pass verbs got over without a loss, as text, each once: servers that BeginPass found
  // restarted between passes ("server 1 (127.0.0.1:7701) was restarted since the last pass"), and
  // those that did not answer for a second or longer (outage.h).
  std::vector<std::string> TakeRestarted();
  // keys: [n]. values: [n, layout.full_floats()]. has_embedx: [n]. rows: [n], the row of values and
  // has_embedx that is pushed for each key; empty: row i for key i.
  absl::Status Push(TableId table, absl::Span<const Key> keys, const float* values,
                    const uint8_t* has_embedx, absl::Span<const Row> rows = {});
  // Removes rows; those that do not exist are ignored. Only after BeginReplica.
  absl::Status PushRemoved(TableId table, absl::Span<const Key> keys);
  absl::Status PushDense(TableId table, const float* values);
  // Pushes gradients, [rows], of a dense table with an update rule (schema.proto, DenseRule). At
  // the commit the servers apply the rule once, to the sum over all workers.
  absl::Status PushDenseGradient(TableId table, const float* gradients);
  // How a pass is committed. worker_state and durable have no effect on servers that are not
  // durable.
  struct CommitOptions {
    // The worker's position after this pass, kept in the manifest; JSON (worker/train/position.h).
    std::string worker_state;
    // false: commits in memory only, and the next durable commit includes the changes; a restart
    // goes back to the last durable commit (commit_every).
    bool durable = true;
    // The steps up to and including the pass, for tables with deferred updates
    // (common/value/step_clock.h). Unset: all rows are up to date, and steps start at 1.
    v1::StepClock clock;
  };
  absl::Status CommitPass(const CommitOptions& commit);
  absl::Status CommitPass() { return CommitPass(CommitOptions()); }
  // Rows that the last CommitPass of this client removed because of the bounds of their tables:
  // those above max_rows, and those past expire_passes or expire_days.
  uint64_t evicted_rows() const { return evicted_rows_; }
  uint64_t expired_rows() const { return expired_rows_; }
  absl::Status AbortPass();

  // Loads a saved model (`what`: its name and options) from the servers' data_dir into empty
  // servers, and commits it on durable ones. reply: the rows of all servers. After an error on
  // durable servers, ClaimTerm restores the last commit.
  absl::Status Load(const v1::LoadRequest& what, v1::LoadReply* reply);

  // Changes the tables in place (Shrink, UpdateAfterSave) on every server. Durable servers commit
  // the change as a pass of its own, with the worker's position unchanged. `call` sends the
  // request, which carries `changes`. If a server restarts before the commit, all servers go back
  // to the last commit and the change is repeated, a few times; then kAborted. Call it as the only
  // writer: kFailedPrecondition if another writer has committed meanwhile.
  using Change = std::function<absl::Status(size_t rank, ControlPlane&, uint64_t changes)>;
  absl::Status ChangeInPlace(const Change& call);

  // Commits a Clear as a pass of its own, with the worker's position unchanged. Does nothing on
  // servers that are not durable.
  absl::Status CommitChange();

  // Removes all rows and sets the committed pass, on every server. On durable servers the next pass
  // or CommitChange commits this. kAborted from any verb before that commit: a server was restarted
  // and has recovered its rows.
  absl::Status Clear(PassId pass);

 private:
  ParameterClient(FleetView view, const ClientOptions& options);

  // One attempt to become the writer, by a claim with `secret`. before: the secret of the claim
  // held until now.
  absl::Status ClaimWith(uint64_t secret, uint64_t before);
  // Waits briefly for a writer that has just ended; errors as ClaimTerm.
  absl::Status AwaitNoWriter() const;
  absl::StatusOr<uint64_t> Meet(const std::string& address, uint64_t secret);
  absl::Status ReadManifest();
  // Local states: gives the newest manifest of server 0 to the servers that have missed it. An
  // error names the server and what its folder lacks.
  absl::Status StoreNewestManifest();
  absl::Status StoreManifestOn(ControlPlane& server, const v1::Manifest& manifest,
                               uint64_t self_xxh3) const;
  absl::Status ChangeOnce(const Change& call);
  // Writes the manifest of the open pass on server 0: the commit point.
  absl::Status Decide(const std::vector<v1::PreparePassReply>& prepared,
                      const CommitOptions& commit);
  v1::Manifest MakeManifest(const std::vector<v1::PreparePassReply>& prepared) const;
  // ForEachServer, each call repeated while its error is retryable: for idempotent verbs.
  absl::Status Repeat(const std::function<absl::Status(size_t rank, ControlPlane&)>& call);
  // base: a header with stride and flags.
  absl::Status PushDenseRows(TableId table, const FrameHeader& base, const float* values);
  // The days after a pass that begins now; none if no table needs them.
  v1::PassDays DaysThrough(PassId pass) const;
  // Begins a pass on all servers.
  absl::Status Begin(const v1::PassRequest& request);
  absl::Status PushRows(const FrameHeader& header, absl::Span<const Key> keys, const float* values,
                        const uint8_t* has_embedx, absl::Span<const Row> rows = {});
  // Takes the next sequence number of each chunk's server.
  template <class Chunk>
  std::vector<uint64_t> TakeSequences(const std::vector<Chunk>& chunks);

  v1::Manifest manifest_;
  uint64_t manifest_xxh3_ = 0;

  // Used only by the thread that calls the pass verbs.
  PassId committed_ = 0, open_ = 0;
  v1::PassDays days_, open_days_;    // up to the committed pass, and up to the open one
  std::vector<uint64_t> sequences_;  // next push, by server
  uint64_t evicted_rows_ = 0, expired_rows_ = 0;
  uint64_t changes_ = 0;         // in place, since the last durable commit
  std::vector<uint64_t> boots_;  // PassReply.boot, by server; 0: unknown
  std::vector<std::string> restarted_;
};

}  // namespace cistern
