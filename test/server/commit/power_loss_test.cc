// Cuts the power after every single call to the disk, in many ways. Whatever is left must recover
// to a commit that is not older than the last acknowledged one, with the rows of that commit. The
// test also shows that a missing sync would be detected.
//
// CISTERN_CRASH_STATES: the number of states to check (40000; 10000000 in the long form), and a
// quarter of it with a state folder for each server, and with a memory limit. States that look the
// same to a recovery are recovered once.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <optional>
#include <thread>
#include <unordered_map>

#include "absl/strings/match.h"
#include "absl/synchronization/mutex.h"
#include "server/commit/durable_state.h"
#include "test/server/commit/recorded_cluster.h"

namespace cistern::server {
namespace {

// The files whose bytes a recovery may read: claims, manifests, and the files that any of them
// names. Of other files, which a crash may leave in many forms, it sees only the names.
class FilesToRead {
 public:
  FilesToRead(MemoryFileSystem& disk, bool local) {
    for (uint32_t rank = 0; rank < (local ? kServers : 1); ++rank) {
      const std::string folder = StateOf(rank, local) + "/manifest";
      const auto names = disk.List(folder);
      if (!names.ok()) continue;
      for (const std::string& name : *names) {
        const auto text = ReadWhole(disk, absl::StrCat(folder, "/", name), 1 << 20);
        if (text.ok()) manifests_ += *text;
      }
    }
  }
  bool operator()(const std::string& path) const {
    const size_t slash = path.rfind('/');
    const std::string folder = path.substr(0, slash);
    if (absl::EndsWith(folder, "/manifest") || absl::EndsWith(folder, "/epoch")) return true;
    if (absl::EndsWith(path, "/local-server")) return true;
    return manifests_.find(path.substr(slash + 1)) != std::string::npos;
  }

 private:
  std::string manifests_;  // one after another
};

// The commit that a disk recovers to; determined by the names on it and the contents of its
// FilesToRead.
struct Recovered {
  std::string error;  // empty: it recovers
  uint64_t commit = 0;
  Term term = 0;
};

// Recovers disks one at a time.
class Survivors {
 public:
  explicit Survivors(const Recording& recording)
      : recording_(recording), map_(ShardMap::Create(kShards, kServers).value()), pool_(1) {}

  Recovered Recover(MemoryFileSystem& lost, const FilesToRead& to_read) {
    Recovered found;
    std::string unforeseen;
    SkippingFileSystem disk(&lost, NoSyncIsSkipped, [&](const std::string& path) {
      if (!to_read(path)) unforeseen = path;
    });
    std::vector<uint64_t> digests(3);
    ParsedManifest newest;  // of server 0
    for (uint32_t rank = 0; rank < kServers && found.error.empty(); ++rank) {
      found.error = RecoverServer(disk, rank, &newest, &found, &digests);
    }
    // Two disks that differ only in such files count as the same.
    if (!unforeseen.empty()) found.error = "a recovery reads " + unforeseen;
    if (!found.error.empty()) return found;
    const auto expected = recording_.digests().find(found.commit);
    if (expected == recording_.digests().end()) {
      found.error = "a commit that never was";
    } else if (expected->second != digests) {
      found.error = absl::StrCat("other rows than commit ", found.commit);
    }
    return found;
  }

 private:
  std::string RecoverServer(FileSystem& disk, uint32_t rank, ParsedManifest* newest,
                            Recovered* found, std::vector<uint64_t>* digests) {
    const uint64_t limit = recording_.memory_limit_bytes();
    TableStore store(map_, rank, /*tiered=*/limit > 0);
    DurableState::Options options;
    options.files = &disk;
    options.folder = StateOf(rank, recording_.local());
    options.local = recording_.local();
    options.tier.memory_limit_bytes = limit;
    options.cluster = "cistern";
    // Reads only: a merge would take time, and another recording covers it.
    options.compact_min_bytes = uint64_t{1} << 40;
    options.compact_max_files = 1 << 30;
    const auto state = DurableState::Open(options, map_, rank, &pool_);
    if (!state.ok()) return std::string(state.status().message());
    if (rank > 0 && recording_.local() && newest->manifest.commit() > 0) {  // as a claim does
      const absl::Status stored = (*state)->StoreManifest(newest->manifest, newest->self_xxh3);
      if (!stored.ok()) return std::string(stored.message());
    }
    const auto pass = (*state)->Recover(store);
    if (!pass.ok()) return std::string(pass.status().message());
    const absl::StatusOr<TermClaim> claim = (*state)->claims().Newest();
    if (!claim.ok()) return std::string(claim.status().message());
    if (rank > 0 && (*state)->commit() != found->commit) {
      return "two servers are at different commits";
    }
    if (rank == 0) *newest = (*state)->manifest();
    found->commit = (*state)->commit();
    found->term = rank == 0 ? claim->term : std::min(found->term, claim->term);
    for (size_t t = 0; t < store.sparse_tables().size(); ++t) {
      const absl::StatusOr<uint64_t> digest = store.sparse_tables()[t]->Digest();
      if (!digest.ok()) return std::string(digest.status().message());
      (*digests)[t] += *digest;
    }
    if (!store.dense_tables().empty()) (*digests)[2] += store.dense_tables()[0]->Digest();
    return "";
  }

  const Recording& recording_;
  const ShardMap map_;
  ThreadPool pool_;
};

// Results by disk content. Most states differ in nothing that matters, so each content is recovered
// once.
//
// Threads: any thread.
class SeenDisks {
 public:
  std::optional<Recovered> Find(const DiskHash& disk) const {
    absl::ReaderMutexLock lock(&mutex_);
    const auto found = seen_.find(disk);
    if (found == seen_.end()) return std::nullopt;
    return Recovered{"", found->second.first, found->second.second};
  }
  // The result of a recovery; an error ends the search.
  void Add(const DiskHash& disk, const Recovered& recovered) {
    absl::MutexLock lock(&mutex_);
    seen_.try_emplace(disk, recovered.commit, recovered.term);
  }
  size_t size() const {
    absl::ReaderMutexLock lock(&mutex_);
    return seen_.size();
  }

 private:
  struct FirstWord {
    size_t operator()(const DiskHash& disk) const { return disk[0]; }
  };

  mutable absl::Mutex mutex_;
  std::unordered_map<DiskHash, std::pair<uint64_t, Term>, FirstWord> seen_ ABSL_GUARDED_BY(mutex_);
};

uint64_t StatesWanted() {
  const char* wanted = std::getenv("CISTERN_CRASH_STATES");
  return wanted == nullptr ? 40000 : std::strtoull(wanted, nullptr, 10);
}

// Enumerates every prefix, with every kind of loss and seed after seed, until `limit` states were
// checked. Returns a broken promise, the first one as far as threads allow.
class Enumeration {
 public:
  Enumeration(const Recording& recording, uint64_t limit) : recording_(recording), limit_(limit) {}

  std::string Run() {
    std::vector<std::thread> threads;
    const size_t thread_num = std::max(1u, std::thread::hardware_concurrency());
    for (size_t i = 0; i < thread_num; ++i) threads.emplace_back([this] { Work(); });
    for (std::thread& thread : threads) thread.join();
    return failure_;
  }
  uint64_t states() const { return states_; }
  uint64_t contents() const { return seen_.size(); }

 private:
  // Empty if the rest of the disk keeps every promise; else a description of the fault.
  std::string Check(Survivors& survivors, size_t prefix, MemoryFileSystem::Loss loss,
                    uint64_t seed) {
    const auto disk = recording_.disk().Crash(prefix, loss, seed);
    const FilesToRead to_read(*disk, recording_.local());
    const DiskHash content = disk->ContentHash(to_read);
    std::optional<Recovered> found = seen_.Find(content);
    if (!found.has_value()) {
      found = survivors.Recover(*disk, to_read);
      if (!found->error.empty()) return found->error;
      seen_.Add(content, *found);
    }
    Promise promised;
    for (const Promise& promise : recording_.promises()) {
      if (promise.operation <= prefix) promised = promise;
    }
    if (found->term < promised.term) return "a claimed term is forgotten";
    if (found->commit >= promised.commit) return "";
    return absl::StrCat("commit ", promised.commit, " was acknowledged, but only ", found->commit,
                        " is left");
  }
  // The states of one prefix with one seed, in turn for all prefixes, then for the next seed.
  void Work() {
    Survivors survivors(recording_);
    const size_t prefixes = recording_.disk().operation_num() + 1;
    while (true) {
      const uint64_t turn = next_++;
      const uint64_t seed = turn / prefixes;
      for (const auto loss : {MemoryFileSystem::Loss::kKill, MemoryFileSystem::Loss::kOrdered,
                              MemoryFileSystem::Loss::kWeak}) {
        if (loss == MemoryFileSystem::Loss::kKill && seed > 0) continue;  // not random
        if (found_ || states_ >= limit_) return;
        ++states_;
        const std::string wrong = Check(survivors, turn % prefixes, loss, seed);
        if (!wrong.empty()) Found(wrong, turn % prefixes, loss, seed);
      }
    }
  }
  void Found(const std::string& wrong, size_t prefix, MemoryFileSystem::Loss loss, uint64_t seed) {
    if (found_.exchange(true)) return;
    failure_ = absl::StrCat(wrong, " (after ", prefix, " operations, the last one ",
                            prefix > 0 ? recording_.disk().Operation(prefix - 1) : "none",
                            "; loss ", static_cast<int>(loss), ", seed ", seed, ")");
  }

  const Recording& recording_;
  const uint64_t limit_;
  SeenDisks seen_;
  std::atomic<uint64_t> next_{0}, states_{0};
  std::atomic<bool> found_{false};
  std::string failure_;  // of the thread that set found_
};

struct Form {
  std::string name;
  bool local = false;  // each server has a state folder of its own
  uint64_t memory_limit_bytes = 0;
};
class PowerLoss : public testing::TestWithParam<Form> {};
INSTANTIATE_TEST_SUITE_P(, PowerLoss,
                         testing::Values(Form{"SharedState"}, Form{"LocalState", true},
                                         Form{"RowsInFiles", false, 1}),
                         [](const auto& instance) { return instance.param.name; });

TEST_P(PowerLoss, EveryCrashRecoversToACommitThatKeepsItsPromises) {
  const Recording recording(NoSyncIsSkipped, GetParam().local, GetParam().memory_limit_bytes);
  const bool is_plain = GetParam().name == "SharedState";
  Enumeration enumeration(recording, StatesWanted() / (is_plain ? 1 : 4));
  EXPECT_EQ(enumeration.Run(), "");
  std::cout << enumeration.states() << " states of " << recording.disk().operation_num()
            << " operations; distinct contents for a recovery: " << enumeration.contents() << "\n";
}

TEST_P(PowerLoss, EveryMissingSyncIsDetected) {
  struct Mutant {
    std::string name, path;
    bool folder, repeat;
  };
  // The contents of a claim file matter only if manifests are removed by hand, so losing them
  // breaks no promise.
  for (const Mutant& mutant : {Mutant{"bytes of row files", "/data/", false, false},
                               Mutant{"bytes of manifests", "/manifest/", false, false},
                               Mutant{"names of row files", "/data", true, false},
                               Mutant{"names of manifests", "/manifest", true, false},
                               Mutant{"names of manifests that are found", "/manifest", true, true},
                               Mutant{"names of claims", "/epoch", true, false}}) {
    const Recording recording(
        [&](const SyncCall& sync) {
          return sync.folder == mutant.folder && sync.repeat == mutant.repeat &&
                 sync.path.find(mutant.path) != std::string::npos;
        },
        GetParam().local, GetParam().memory_limit_bytes);
    Enumeration enumeration(recording, 20000);
    const std::string found = enumeration.Run();
    EXPECT_NE(found, "") << mutant.name << " unsynced: not detected";
    std::cout << mutant.name << " unsynced: after " << enumeration.states() << " states: " << found
              << "\n";
  }
}

}  // namespace
}  // namespace cistern::server
