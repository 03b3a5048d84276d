// What makes one server's commits survive: the durable half of the pass protocol.
//
// A durable pass, on this server:
//   Prepare   one immutable row file: the rows that the pass changes (a delta), or all (a base)
//   Decide    on server 0: the manifest gets its name, once; from then on the pass is committed
//   Adopt     the server takes the manifest as its own, and the staged rows become its state
// A server that missed Adopt, or was restarted, recovers from the newest manifest's files. Whatever
// is in memory and in no manifest (a pass committed in memory only, a load that was not committed)
// is dropped by recovering.
//
// Files are merged into a new base by a thread of its own (compaction.h), from files to files: it
// never looks at a table, and nothing waits for it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "common/base/thread_pool.h"
#include "common/io/file_system.h"
#include "server/checkpoint/shard_image.h"
#include "server/checkpoint/state_folder.h"
#include "server/commit/claim_book.h"
#include "server/commit/decision_check.h"
#include "server/commit/staging.h"
#include "server/table/table_store.h"

namespace cistern {

class Compaction;

// Threads: Prepare, Adopt, Recover and the notes about memory are called one at a time (the pass
// stage or a job lock sees to it); the rest at any time.
class DurableState {
 public:
  struct Options {
    FileSystem* files = nullptr;
    std::string folder;  // data_dir/state
    std::string cluster;
    uint32_t keep_commits = 3;                       // manifests that stay readable
    uint64_t compact_min_bytes = uint64_t{1} << 20;  // deltas below this are never merged alone
    uint32_t compact_max_files = 32;                 // more files than this are merged
  };
  // kFailedPrecondition: the folder is another cluster's, has another shard_num, or is in use by
  // another process. kDataLoss: the newest manifest cannot be trusted.
  static absl::StatusOr<std::unique_ptr<DurableState>> Open(const Options& options,
                                                            const ShardMap& map, uint32_t rank,
                                                            ThreadPool* pool);
  ~DurableState();

  // The claims of writers in this folder.
  ClaimBook claims() const { return ClaimBook(folder_.get()); }

  // The manifest that this server's state is that of; commit 0 at first.
  ParsedManifest manifest() const;
  uint64_t commit() const;       // its number
  uint64_t state_bytes() const;  // of the files it is recovered from
  // Whether a newer manifest is there, or memory holds what no manifest does.
  absl::StatusOr<bool> NeedsRecovery() const;

  // Whether a newer manifest is there.
  absl::StatusOr<bool> IsBehind() const;

  // Makes `store` what the newest manifest says: reads one delta where that is all that is missing,
  // else everything. The tables are created where the store has none. Returns the pass of it.
  // kDataLoss, with the file and block: a file that cannot be trusted, or rows that do not add up
  // to the digests; the store is empty then.
  absl::StatusOr<PassId> Recover(TableStore& store);

  // Writes what committing `staging` as `pass` changes; durable: as a row file, described in *part.
  // New rows are placed in the tables meanwhile, where nobody sees them: no pull reads anything
  // else than before. An error leaves nothing behind. A new Prepare replaces the one before.
  absl::Status Prepare(TableStore& store, const Staging& staging, Epoch epoch, bool durable,
                       v1::PreparedPart* part);
  // Of a durable Prepare, what its answer was (for a repeated call).
  v1::PreparedPart prepared() const;

  // Server 0: names the manifest, if it is what was prepared (decision_check.h). is_prepared:
  // whether the manifest's pass is, on this server. kAborted: it is not, another manifest was
  // decided for this commit, or this one does not follow the newest; errors of DecisionCheck. Its
  // hash, also where it was decided before.
  absl::StatusOr<uint64_t> Decide(const v1::Manifest& manifest, const TableStore& store,
                                  bool is_prepared);

  // Whether manifest `commit` is decided and names the file that is prepared here, so that the
  // staged rows can be written to the tables; false: recover instead. kFailedPrecondition if it is
  // not decided.
  absl::StatusOr<bool> CanAdopt(uint64_t commit);
  // The staged rows are in the tables: by manifest `commit`, or, 0, in memory only.
  void Adopted(const Staging& staging, uint64_t commit);

  // Memory was changed in place, after `before` changes since the last commit, and is to become the
  // next commit's: the rows of `keys` ([table][local shard]), or, without, all of them.
  void Changed(uint64_t before, const std::vector<std::vector<std::vector<Key>>>* keys);
  // kAborted unless memory holds exactly `changes` of them: a server that was restarted holds none,
  // and a commit with it would be neither what was before the change nor what is after it.
  absl::Status CheckChanges(uint64_t changes) const;
  // The tables can no longer be trusted: they are not read until Recover.
  void GiveUpMemory();
  // Whether memory is changed so, and must not be read as committed state.
  bool dirty() const;

  // Compares the digests that were kept with those of the tables; kDataLoss names table and shard.
  // files: also reads every file of the manifest that this server recovers from.
  absl::Status Scrub(const TableStore& store, bool files, uint64_t* file_num, uint64_t* bytes);

  // Waits until no compaction runs (tests, and a clean stop).
  void AwaitCompaction();

 private:
  DurableState(const Options& options, const ShardMap& map, uint32_t rank, ThreadPool* pool,
               std::unique_ptr<StateFolder> folder, uint32_t merges);

  using Totals = std::vector<std::vector<ShardTotals>>;  // [table][local shard]

  // --- prepare.cc
  absl::Status WriteRows(TableStore& store, const Staging& staging, Epoch epoch,
                         v1::PreparedPart* part);
  absl::Status WriteSparse(TableStore& store, const Staging& staging, RowFileWriter* writer);
  // The section of a shard; nothing without a writer.
  absl::Status WriteImage(const ShardImage& image, TableId table, uint32_t local,
                          const ValueLayout& layout, RowFileWriter* writer) const;
  absl::Status WriteDense(const TableStore& store, const Staging& staging, RowFileWriter* writer,
                          v1::PreparedPart* part);
  absl::StatusOr<std::unique_ptr<RowFileWriter>> NewFile(const RowFileHeader& header);

  // --- recover.cc
  absl::Status LoadFiles(TableStore& store, const std::vector<v1::RowFile>& files);
  absl::Status LoadShard(SparseTable& table, TableId id, uint32_t local,
                         const std::vector<std::unique_ptr<RowFileReader>>& files,
                         ShardTotals* totals) const;
  bool FollowsByDelta(const ParsedManifest& newest) const;
  // Reads the manifests before `newest` that stay readable, so that their files stay too.
  absl::Status KeepOlderManifests(uint64_t newest);
  // kDataLoss unless the files of `manifest`, of all servers, add up to its tables.
  absl::Status CheckWholeCommit(const v1::Manifest& manifest) const;
  // Files of a manifest that hold rows of this server, by commit.
  std::vector<v1::RowFile> FilesOf(const v1::Manifest& manifest) const;

  // --- durable_state.cc
  void TakeManifest(ParsedManifest manifest);
  void StartCompactionIfDue();
  std::vector<v1::RowFile> NextChain() const;
  void CollectGarbage();
  void Forget();  // what Prepare made

  const Options options_;
  const ShardMap map_;
  const uint32_t rank_;
  const uint64_t cluster_id_;
  ThreadPool* const pool_;
  const std::unique_ptr<StateFolder> folder_;

  // Of the caller that prepares, adopts and recovers.
  Totals totals_;                                       // of the tables, as memory holds them
  bool totals_stale_ = false;                           // memory was changed in place
  std::vector<std::vector<std::vector<Key>>> touched_;  // [table][local]: in memory, in no file yet
  std::vector<bool> dense_touched_;
  bool base_needed_ = true;  // the next file must hold every row
  Totals prepared_totals_;
  std::string prepared_file_;  // empty: none
  ParsedManifest adopting_;    // what CanAdopt has read
  uint32_t merges_;            // attempts for a merged base, those of earlier processes too

  // Held for a whole decision: a repeat that arrives while the first still writes must find it
  // done. Comes before mutex_.
  absl::Mutex decision_mutex_;
  DecisionCheck decision_check_ ABSL_GUARDED_BY(decision_mutex_);

  mutable absl::Mutex mutex_;
  ParsedManifest manifest_ ABSL_GUARDED_BY(mutex_);
  std::vector<v1::RowFile> chain_ ABSL_GUARDED_BY(mutex_);  // this server's files, by commit
  bool ahead_ ABSL_GUARDED_BY(mutex_) = false;  // memory holds passes that no manifest does
  bool dirty_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t changes_ ABSL_GUARDED_BY(mutex_) = 0;  // in place, in memory and in no manifest
  v1::PreparedPart prepared_part_ ABSL_GUARDED_BY(mutex_);
  std::vector<ParsedManifest> kept_ ABSL_GUARDED_BY(mutex_);  // newest last: their files stay
  std::unique_ptr<Compaction> compaction_;                    // last: its thread uses the folder
};

}  // namespace cistern
