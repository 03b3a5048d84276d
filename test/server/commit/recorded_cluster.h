// A short life of a cluster with every disk call recorded and optional omission of syncs, as input
// for power_loss_test.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/synchronization/mutex.h"
#include "server/commit/durable_state.h"
#include "test/support/memory_file_system.h"
#include "test/worker/client/embedded_fleet.h"
#include "test/worker/client/restartable_fleet.h"

namespace cistern::server {

inline constexpr char kDataDir[] = "/cluster";
inline constexpr uint32_t kServers = 2, kShards = 2;

inline v1::Schema SmallSchema() {
  v1::Schema schema = TestSchema();
  schema.mutable_dense_tables(0)->set_rows(7);
  return schema;
}

// A sync of a file, or of the names in a folder. repeat: a sync of a manifest folder in which
// nothing was named since the last one, so that it serves a name given by another process.
struct SyncCall {
  std::string path;
  bool folder = false, repeat = false;
};

// Forwards calls, except the syncs that a test omits or makes fail.
class SkippingFileSystem : public FileSystem {
 public:
  using Skip = std::function<bool(const SyncCall& sync)>;
  using Opened = std::function<void(const std::string& path)>;
  // opened: called with every file that is opened.
  SkippingFileSystem(FileSystem* files, Skip skip, Opened opened = nullptr)
      : files_(files), skip_(std::move(skip)), opened_(std::move(opened)) {}

  absl::StatusOr<std::unique_ptr<WritableFile>> Create(const FilePath& path) override {
    CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, files_->Create(path));
    if (!skip_({path.text()})) return file;
    return std::make_unique<Unsynced>(std::move(file));
  }
  absl::StatusOr<std::unique_ptr<ReadableFile>> Open(const FilePath& path) override {
    if (opened_) opened_(path.text());
    return files_->Open(path);
  }
  absl::Status MakeFolders(const FilePath& path) override { return files_->MakeFolders(path); }
  absl::Status Publish(const FilePath& from, const FilePath& to) override {
    if (IsOfManifests(ParentFolder(to.text()))) named_ = true;
    return files_->Publish(from, to);
  }
  absl::Status Replace(const FilePath& from, const FilePath& to) override {
    return files_->Replace(from, to);
  }
  absl::Status Exchange(const FilePath& a, const FilePath& b) override {
    return files_->Exchange(a, b);
  }
  absl::Status Remove(const FilePath& path) override { return files_->Remove(path); }
  absl::Status SyncFolder(const FilePath& folder) override {
    const std::string& path = folder.text();
    const bool repeat = IsOfManifests(path) && !named_.exchange(false);
    if (IsOfManifests(path) && failures_ > 0) {
      --failures_;
      return error_;
    }
    return skip_({path, true, repeat}) ? absl::OkStatus() : files_->SyncFolder(folder);
  }
  absl::StatusOr<std::vector<std::string>> List(const FilePath& folder) override {
    return files_->List(folder);
  }
  absl::StatusOr<bool> Exists(const FilePath& path) override { return files_->Exists(path); }
  absl::Status MakeLink(const std::string& target, const FilePath& path) override {
    return files_->MakeLink(target, path);
  }
  absl::StatusOr<std::string> ReadLink(const FilePath& path) override {
    return files_->ReadLink(path);
  }
  absl::StatusOr<std::unique_ptr<FileLock>> Lock(const FilePath& path) override {
    return files_->Lock(path);
  }

  // Makes the next sync of manifest names fail and do nothing. Not while another call runs.
  void FailNextManifestSync(const absl::Status& error) {
    error_ = error;
    failures_ = 1;
  }

 private:
  static bool IsOfManifests(const std::string& folder) {
    return absl::EndsWith(folder, "/manifest");
  }
  class Unsynced : public WritableFile {
   public:
    explicit Unsynced(std::unique_ptr<WritableFile> file) : file_(std::move(file)) {}
    absl::Status Append(absl::string_view bytes) override { return file_->Append(bytes); }
    absl::Status WriteAt(uint64_t offset, absl::string_view bytes) override {
      return file_->WriteAt(offset, bytes);
    }
    absl::Status Sync() override { return absl::OkStatus(); }
    absl::Status Close() override { return file_->Close(); }

   private:
    const std::unique_ptr<WritableFile> file_;
  };

  FileSystem* const files_;
  const Skip skip_;
  const Opened opened_;
  std::atomic<bool> named_{false};
  std::atomic<int> failures_{0};
  absl::Status error_;
};

inline bool NoSyncIsSkipped(const SyncCall&) {
  return false;
}

// The promises that hold at some moment of the recording.
struct Promise {
  size_t operation = 0;  // operations done by then
  uint64_t commit = 0;
  Term term = 0;
};

// The state folder of a server; local: each has one of its own.
inline std::string StateOf(uint32_t rank, bool local) {
  return StateFolderOf(local && rank > 0 ? absl::StrCat(kDataDir, "/server-", rank) : kDataDir);
}

// A short life of a cluster, written to a disk in memory.
class Recording {
 public:
  // local: each server has a state folder of its own. memory_limit_bytes: of each server, if not 0.
  explicit Recording(SkippingFileSystem::Skip skip, bool local = false,
                     uint64_t memory_limit_bytes = 0)
      : files_(&disk_, std::move(skip)), local_(local), memory_limit_bytes_(memory_limit_bytes) {
    digests_[0] = {0, 0, 0};
    ServerOptions options;
    options.data_dir = kDataDir;
    options.shard_num = kShards;
    options.keep_commits = 2;
    options.compact_min_bytes = 1;
    options.files = &files_;
    options.local_state = local;
    options.memory_limit_bytes = memory_limit_bytes;
    {
      RestartableFleet fleet(kServers, options);
      auto client = Start(fleet);
      for (uint64_t round = 1; round <= 3; ++round) Commit(fleet, *client, round);
      // An undecided pass, and then another writer.
      EXPECT_EQ(client->BeginPass(), absl::OkStatus());
      EXPECT_EQ(Push(*client, 99), absl::OkStatus());
      client = Start(fleet);
      Commit(fleet, *client, 4);
      // A manifest gets its name, then its server fails: a later reader takes it for decided.
      files_.FailNextManifestSync(absl::InternalError("the disk is gone"));
      EXPECT_FALSE(Round(*client, 5, /*durable=*/true).ok());
      client = Start(fleet);
      digests_[client->manifest().commit()] = DigestsOf(*client);
      // The same, and the decision is requested again.
      files_.FailNextManifestSync(absl::UnavailableError("the disk is away"));
      Commit(fleet, *client, 6);
      // In memory first, then on disk.
      EXPECT_EQ(Round(*client, 7, /*durable=*/false), absl::OkStatus());
      Commit(fleet, *client, 8);
      EXPECT_EQ(fleet.Restart(1), absl::OkStatus());
      Commit(fleet, *client, 9);
      // Everything is replaced.
      EXPECT_EQ(client->Clear(2), absl::OkStatus());
      Commit(fleet, *client, 10);
      Commit(fleet, *client, 11);
    }
    // Another life, which starts from what is on disk.
    RestartableFleet fleet(kServers, options);
    auto client = Start(fleet);
    Commit(fleet, *client, 12);
  }

  const MemoryFileSystem& disk() const { return disk_; }
  bool local() const { return local_; }
  uint64_t memory_limit_bytes() const { return memory_limit_bytes_; }
  const std::vector<Promise>& promises() const { return promises_; }
  // The digests of the tables at a commit; those of empty tables at commit 0.
  const std::map<uint64_t, std::vector<uint64_t>>& digests() const { return digests_; }

 private:
  std::unique_ptr<ParameterClient> Start(RestartableFleet& fleet) {
    auto client = Connected(fleet.Links());
    EXPECT_EQ(client->CreateTables(SmallSchema()), absl::OkStatus());
    EXPECT_EQ(client->ClaimTerm(), absl::OkStatus());
    Promised(*client);
    return client;
  }
  void Promised(const ParameterClient& client) {
    promises_.push_back(
        {disk_.operation_num(), client.manifest().commit(), client.identity().epoch()});
  }
  void Commit(RestartableFleet& fleet, ParameterClient& client, uint64_t round) {
    EXPECT_EQ(Round(client, round, true), absl::OkStatus());
    Promised(client);
    digests_[client.manifest().commit()] = DigestsOf(client);
    for (size_t rank = 0; rank < fleet.size(); ++rank) fleet.node(rank).AwaitCompaction();
  }
  static absl::Status Round(ParameterClient& client, uint64_t round, bool durable) {
    CISTERN_RETURN_IF_ERROR(client.BeginPass());
    CISTERN_RETURN_IF_ERROR(Push(client, round));
    ParameterClient::CommitOptions commit;
    commit.durable = durable;
    return client.CommitPass(commit);
  }
  static absl::Status Push(ParameterClient& client, uint64_t round) {
    std::vector<Key> keys;
    for (Key key = 1; key <= 6; ++key) keys.push_back(key + round % 4);
    std::vector<float> values = ValuesOf(keys, client.layout(kDeep).full_floats());
    for (float& value : values) value += static_cast<float>(round);
    const std::vector<uint8_t> has_embedx(keys.size(), 1);
    CISTERN_RETURN_IF_ERROR(client.Push(kDeep, keys, values.data(), has_embedx.data()));
    const std::vector<float> dense(7 * 3, static_cast<float>(round));
    return client.PushDense(kMlp, dense.data());
  }

  MemoryFileSystem disk_;
  SkippingFileSystem files_;
  const bool local_;
  const uint64_t memory_limit_bytes_;
  std::vector<Promise> promises_;
  std::map<uint64_t, std::vector<uint64_t>> digests_;
};

}  // namespace cistern::server
