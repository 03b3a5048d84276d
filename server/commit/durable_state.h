// Makes one server's commits survive: the durable half of the pass protocol.
//
// A durable pass, on this server:
//   Prepare   writes one immutable row file: the rows that the pass changes (a delta), or all rows
//             (a base)
//   Decide    on server 0: gives the manifest its name, once; from then on the pass is committed
//   Adopt     the server takes the manifest as its own, and the staged rows become its state
//
// A server that missed Adopt, or was restarted, recovers from the files of the newest manifest.
// Recovery drops state that exists only in memory: a pass committed in memory only, or a load that
// was not committed.
//
// With a local state, the folder is this server's alone, and other servers cannot see its files. A
// manifest then reaches a server by StoreManifest, before Adopt, so a commit that a worker reports
// is in every folder. Server 0 checks the names of the other servers' files, and each server that
// its own files are there.
//
// state_chain.h keeps the files in order, tier.h the rows that are not in memory.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/thread_pool.h"
#include "common/io/file_system.h"
#include "server/checkpoint/shard_image.h"
#include "server/checkpoint/state_folder.h"
#include "server/commit/claim_book.h"
#include "server/commit/decision_check.h"
#include "server/commit/staging.h"
#include "server/commit/state_chain.h"
#include "server/commit/tier.h"
#include "server/table/table_store.h"

namespace cistern::server {

// Threads: call Prepare, Adopt, Recover, Changed and DistrustMemory one at a time (CommitState
// or a job lock ensures it); call the rest at any time.
class DurableState {
 public:
  struct Options {
    FileSystem* files = nullptr;
    std::string folder;           // data_dir/state
    bool local = false;           // the folder is this server's alone
    bool waits_for_copy = false;  // see AwaitCopy
    std::string cluster;
    uint32_t keep_commits = 3;                       // manifests that stay readable
    uint64_t compact_min_bytes = uint64_t{1} << 20;  // deltas below this are never merged alone
    uint32_t compact_max_files = 32;                 // more files than this are merged
    Tier::Options tier = {};
  };
  // kFailedPrecondition: the folder belongs to another cluster, has another shard_num, or is used
  // by another process. kDataLoss: the newest manifest cannot be trusted, or, in a local state, is
  // without this server's files.
  static absl::StatusOr<std::unique_ptr<DurableState>> Open(const Options& options,
                                                            const ShardMap& map, uint32_t rank,
                                                            ThreadPool* pool);
  // The claims of writers in this folder.
  ClaimBook claims() const { return ClaimBook(folder_.get()); }

  // The manifest of this server's state; commit 0 before the first.
  ParsedManifest manifest() const { return chain_->manifest(); }
  uint64_t commit() const { return chain_->commit(); }  // its number
  uint64_t state_bytes() const {
    return chain_->bytes();
  }  // of the files that this server recovers from
  uint64_t memory_limit_bytes() const { return options_.tier.memory_limit_bytes; }
  bool local() const { return options_.local; }
  // The number of the newest manifest in the folder; 0: none.
  absl::StatusOr<uint64_t> NewestManifest() const;
  // Whether a newer manifest exists, or memory holds changes that are in no manifest.
  absl::StatusOr<bool> NeedsRecovery() const;

  // Whether a newer manifest exists.
  absl::StatusOr<bool> IsBehind() const;

  // Brings `store` to the state of the newest manifest. Reads one delta if nothing else is missing,
  // otherwise everything. Creates the tables if the store has none. Returns the pass of the
  // manifest. kDataLoss, with file and block: a file cannot be trusted, or the rows do not add up
  // to the digests; the store is then empty.
  absl::StatusOr<PassId> Recover(TableStore& store);

  // Prepares the commit of `staging`. durable: writes its changes as a row file, described in
  // *part. Meanwhile, new rows are placed in the tables, invisible to pulls. An error leaves
  // nothing on disk or in the tables. A new Prepare replaces the previous one.
  absl::Status Prepare(TableStore& store, const Staging& staging, Term term, bool durable,
                       v1::PreparedPart* part);
  // The answer of the last durable Prepare (for a repeated call).
  v1::PreparedPart prepared() const;
  v1::PassDays prepared_days() const;  // of the pass
  // Returns once the program that copies this state (checkpoint/copy_record.h) has copied the files
  // of `part`, at once if options.waits_for_copy is not set. kUnavailable after `patience`.
  absl::Status AwaitCopy(const v1::PreparedPart& part, absl::Duration patience);
  // The newest commit that is whole in the copy, if there is such a program.
  std::optional<uint64_t> copied_commit() const;

  // For server 0: gives the manifest its name if it matches what was prepared (decision_check.h),
  // and returns it as written, also if it was decided before. is_prepared: whether the manifest's
  // pass is prepared on this server. kAborted: it is not, another manifest was decided for this
  // commit, or this one does not follow the newest. Also the errors of DecisionCheck.
  absl::StatusOr<ParsedManifest> Decide(const v1::Manifest& manifest, const TableStore& store,
                                        bool is_prepared);

  // For the other servers of a local state: writes the manifest that server 0 has decided into the
  // folder, with the same name and bytes; from then on CanAdopt and Recover find it. OK if it is
  // there. kDataLoss names what is missing: a file of this server, or commits between its newest
  // and this one, so its folder is an older or another one. kFailedPrecondition: the folder has
  // another manifest of this commit, or a newer one; the folder is not local. kInvalidArgument: the
  // manifest contradicts itself or its hash, or is another cluster's.
  absl::Status StoreManifest(const v1::Manifest& manifest, uint64_t self_xxh3);

  // Whether manifest `commit` is decided and names the file prepared here, so that the staged rows
  // can be written to the tables. If false, the server must recover instead. kFailedPrecondition if
  // the commit is not decided.
  absl::StatusOr<bool> CanAdopt(uint64_t commit);
  // Writes the staged rows to the tables: by manifest `commit`, for which CanAdopt was true, or, if
  // 0, in memory only.
  void Adopt(TableStore& store, const Staging& staging, uint64_t commit);

  // Records a change in place, after `before` changes since the last commit. The next commit writes
  // the rows of `keys` ([table][local shard]) or, if null, all rows.
  void Changed(uint64_t before, const std::vector<std::vector<std::vector<Key>>>* keys);
  // kAborted unless memory holds exactly `changes` changes in place. A restarted server holds none;
  // a commit with it would match neither the state before the change nor the state after it.
  absl::Status CheckChanges(uint64_t changes) const;
  // Declares the tables untrusted: they are not read until Recover.
  void DistrustMemory();
  // Whether memory holds uncommitted changes in place or is untrusted, and must not be read as
  // committed state.
  bool dirty() const;

  // Compares the recorded digests with those of the tables; kDataLoss names table and shard.
  // files: also reads every file of the manifest that this server recovers from.
  absl::Status Scrub(const TableStore& store, bool files, uint64_t* file_num, uint64_t* bytes);

  // Waits until no compaction runs (for tests and a clean stop).
  void AwaitCompaction() { chain_->AwaitCompaction(); }

 private:
  DurableState(const Options& options, const ShardMap& map, uint32_t rank, ThreadPool* pool,
               std::unique_ptr<StateFolder> folder, std::unique_ptr<StateChain> chain);

  using Totals = std::vector<std::vector<ShardTotals>>;  // [table][local shard]

  // --- prepare.cc
  absl::Status WriteRows(TableStore& store, const Staging& staging, Term term,
                         v1::PreparedPart* part);
  // Without a writer, only counts.
  absl::Status WriteSparse(TableStore& store, const Staging& staging, RowFileWriter* writer);
  absl::Status WriteDense(const TableStore& store, const Staging& staging, RowFileWriter* writer,
                          v1::PreparedPart* part);
  // A base of tiered tables, whose rows need not fit memory.
  absl::Status WriteTieredBase(const TableStore& store, const Staging& staging,
                               RowFileWriter& writer);
  absl::StatusOr<std::unique_ptr<RowFileWriter>> NewFile(const RowFileHeader& header);

  // --- recover.cc
  absl::Status LoadFiles(TableStore& store, const std::vector<v1::RowFile>& files);
  absl::Status LoadShard(SparseTable& table, TableId id, uint32_t local,
                         const std::vector<std::unique_ptr<RowFileReader>>& files,
                         ShardTotals* totals) const;
  bool FollowsByDelta(const ParsedManifest& newest) const;
  // kDataLoss unless the files of `manifest`, over all servers, add up to its tables. Of a local
  // state with several servers: unless the files of this server are there.
  absl::Status CheckWholeCommit(const v1::Manifest& manifest) const;
  // kDataLoss, with their names, unless these are there and those that the manifest means.
  absl::Status CheckOwnFiles(const v1::Manifest& manifest) const;

  // --- durable_state.cc
  void Adopted(const Staging& staging, uint64_t commit);
  void TakeManifest(ParsedManifest manifest);
  void Forget();  // discards the result of Prepare

  const Options options_;
  const ShardMap map_;
  const uint32_t rank_;
  const uint64_t cluster_id_;
  ThreadPool* const pool_;
  const std::unique_ptr<StateFolder> folder_;
  const std::unique_ptr<StateChain> chain_;

  // Owned by the one caller that prepares, adopts and recovers.
  Totals totals_;                                       // of the tables in memory
  bool totals_stale_ = false;                           // totals_ lag behind a change in place
  std::vector<std::vector<std::vector<Key>>> touched_;  // [table][local]: changed, in no file yet
  std::vector<bool> dense_touched_;
  bool base_needed_ = true;  // the next file must hold every row
  Totals prepared_totals_;
  std::string prepared_file_;  // empty: none
  ParsedManifest adopting_;    // read by CanAdopt
  std::optional<Tier> tier_;   // none: every row stays in memory

  // Held for a whole decision: a repeated call that arrives during the first must wait and find it
  // done. Acquired before mutex_.
  absl::Mutex decision_mutex_;
  DecisionCheck decision_check_ ABSL_GUARDED_BY(decision_mutex_);

  absl::Mutex copy_mutex_;  // held while the record of the prepared files is written

  mutable absl::Mutex mutex_;
  bool ahead_ ABSL_GUARDED_BY(mutex_) = false;  // memory holds passes that are in no manifest
  bool dirty_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t changes_ ABSL_GUARDED_BY(mutex_) = 0;  // changes in place that are in no manifest
  v1::PreparedPart prepared_part_ ABSL_GUARDED_BY(mutex_);
  v1::PassDays prepared_days_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace cistern::server
