#include "app/state/copy_state.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "app/state/copy_place.h"
#include "app/state/saved_place.h"
#include "common/io/new_file.h"
#include "common/value/shard_map.h"
#include "server/checkpoint/compaction.h"
#include "server/checkpoint/copy_record.h"
#include "server/checkpoint/row_file.h"
#include "worker/data/storage/storage.h"

namespace cistern::app {
namespace {

constexpr char kPulling[] = "state.pulling";

std::string ManifestName(uint64_t commit) {
  return absl::StrCat("manifest/", NumberName(commit));
}
std::string DataName(const std::string& file) {
  return absl::StrCat("data/", file);
}

absl::Status BadFile(const absl::Status& status) {
  return absl::IsDataLoss(status) ? WithKind(status, ErrorKind::kBadCheckpoint) : status;
}

// Reads every block. kDataLoss, with the path: the file is missing, another one, or corrupt.
absl::Status VerifyFile(FileSystem& files, const std::string& folder, const v1::RowFile& file) {
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<RowFileReader> reader,
                           RowFileReader::Open(files, folder, file));
  return reader->Verify();
}

// Finds the state that a user named.
absl::StatusOr<std::unique_ptr<StateFolder>> StateAt(FileSystem& files, const std::string& path) {
  absl::StatusOr<std::unique_ptr<StateFolder>> state = FindState(files, path);
  if (!absl::IsNotFound(state.status())) return state;
  return WithFix(absl::InvalidArgumentError(state.status().message()),
                 "name the data_dir of a server, or the folder state in it");
}

// The manifest of a commit of the copy, by way of a file in `folder`.
absl::StatusOr<ParsedManifest> CopiedManifest(CopyPlace& place, uint64_t commit, FileSystem& files,
                                              const std::string& folder) {
  const std::string local = absl::StrCat(folder, "/copied-manifest");
  CISTERN_RETURN_IF_ERROR(RemoveIfThere(files, local));
  CISTERN_RETURN_IF_ERROR(place.Get(ManifestName(commit), local));
  absl::StatusOr<ParsedManifest> parsed = ReadManifestFile(files, local);
  CISTERN_RETURN_IF_ERROR(files.Remove(local));
  const std::string path = place.PathOf(ManifestName(commit));
  if (!parsed.ok()) return BadFile(AddContext(parsed.status(), path));
  if (parsed->manifest.commit() == commit) return parsed;
  return BadFile(absl::DataLossError(
      absl::StrCat(path, " is the manifest of commit ", parsed->manifest.commit())));
}

// --- push

// One state and its copy.
class Push {
 public:
  Push(FileSystem& files, const StateFolder& state, const PushStateOptions& options,
       const JobCalls& calls)
      : files_(files),
        state_(state),
        options_(options),
        calls_(calls),
        place_(CopyPlace::At(files, options.to)) {}

  // Copies what is new. Returns whether the copy has all of the newest commit, of this server and
  // the others.
  absl::StatusOr<bool> Step() {
    CISTERN_ASSIGN_OR_RETURN(const std::optional<ParsedManifest> newest, state_.NewestManifest());
    CISTERN_ASSIGN_OR_RETURN(there_, place_->List("data"));
    if (newest.has_value()) {
      pushed_.commit = newest->manifest.commit();
      CISTERN_RETURN_IF_ERROR(CheckDescent(*newest));
      // A newer copy: the server has prepared that commit, and not heard of it yet. The files of
      // older ones may have been removed from the copy.
      if (pushed_.whole_commit <= pushed_.commit) {
        CISTERN_RETURN_IF_ERROR(PutFilesOf(newest->manifest));
      }
    }
    CISTERN_RETURN_IF_ERROR(PutPrepared());
    if (newest.has_value()) CISTERN_RETURN_IF_ERROR(PutManifest(*newest));
    CISTERN_RETURN_IF_ERROR(Tell());
    return pushed_.whole_commit >= pushed_.commit;
  }

  // What a change of the state changes: Step is due when this differs.
  absl::StatusOr<std::pair<uint64_t, std::string>> Mark() const {
    CISTERN_ASSIGN_OR_RETURN(const std::vector<uint64_t> commits, state_.Commits());
    CISTERN_ASSIGN_OR_RETURN(const std::vector<CopyRecord> prepared, Prepared());
    std::string texts;
    for (const CopyRecord& record : prepared) absl::StrAppend(&texts, FormatCopyRecord(record));
    return std::pair(commits.empty() ? 0 : commits.back(), texts);
  }

  // Step, again if the server has removed the commit meanwhile, as it does with old ones.
  absl::StatusOr<bool> StepInTime() {
    constexpr int kMostTries = 5;
    for (int attempt = 1;; ++attempt) {
      CISTERN_ASSIGN_OR_RETURN(const auto before, Mark());
      absl::StatusOr<bool> step = Step();
      if (!absl::IsDataLoss(step.status()) && !absl::IsNotFound(step.status())) return step;
      CISTERN_ASSIGN_OR_RETURN(const auto after, Mark());
      if (after == before || attempt == kMostTries) return step;
    }
  }

  const PushedState& pushed() const { return pushed_; }

 private:
  // The copy must hold commits of this state, as far as both still have one of the same number.
  absl::Status CheckDescent(const ParsedManifest& newest) {
    CISTERN_ASSIGN_OR_RETURN(const auto manifests, place_->List("manifest"));
    uint64_t commit = 0;
    for (const auto& [name, bytes] : manifests) commit = std::max(commit, NumberOfName(name));
    pushed_.whole_commit = commit;
    if (commit == 0 || commit == checked_) return absl::OkStatus();
    CISTERN_ASSIGN_OR_RETURN(const ParsedManifest copied, ReadManifest(commit));
    const uint64_t mine = newest.manifest.commit();
    const absl::StatusOr<ParsedManifest> same = state_.ReadManifest(commit);
    if (copied.manifest.cluster() != newest.manifest.cluster() ||
        (commit + 1 == mine && newest.manifest.previous() != copied.self_xxh3) ||
        (mine + 1 == commit && copied.manifest.previous() != newest.self_xxh3) ||
        (same.ok() && same->self_xxh3 != copied.self_xxh3)) {
      return WithFix(
          absl::FailedPreconditionError(absl::StrCat(place_->PathOf(""), " holds commit ", commit,
                                                     " of another training than ", state_.path())),
          "name another place for the copy");
    }
    checked_ = commit;
    return absl::OkStatus();
  }

  absl::StatusOr<ParsedManifest> ReadManifest(uint64_t commit) {
    return CopiedManifest(*place_, commit, files_, state_.path());
  }

  // Copies a file unless it is there. A file that the server has just removed is left out.
  absl::Status PutFile(const v1::RowFile& file) {
    own_.insert(file.name());
    const auto found = there_.find(file.name());
    if (found != there_.end() && (file.bytes() == 0 || found->second == file.bytes())) {
      return absl::OkStatus();
    }
    CISTERN_RETURN_IF_ERROR(calls_.CheckStop());
    CISTERN_RETURN_IF_ERROR(BadFile(VerifyFile(files_, state_.data_path(), file)));
    const std::string path = absl::StrCat(state_.data_path(), "/", file.name());
    CISTERN_RETURN_IF_ERROR(place_->Put(path, DataName(file.name()), "0"));
    CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> copied, files_.Open(path));
    there_[file.name()] = copied->bytes();
    ++pushed_.files;
    pushed_.bytes += copied->bytes();
    return absl::OkStatus();
  }

  absl::Status PutFilesOf(const v1::Manifest& manifest) {
    own_.clear();
    std::set<uint32_t> servers, away;
    for (const v1::RowFile& file : manifest.files()) {
      CISTERN_ASSIGN_OR_RETURN(const bool here,
                               files_.Exists(absl::StrCat(state_.data_path(), "/", file.name())));
      (here ? servers : away).insert(file.server());
    }
    if (servers.empty()) {
      return BadFile(absl::DataLossError(absl::StrCat(
          state_.path(), ": it has no row file of its newest commit, ", manifest.commit())));
    }
    for (const uint32_t server : away) {
      if (servers.erase(server) == 0) continue;  // another server's
      return BadFile(absl::DataLossError(absl::StrCat(state_.path(),
                                                      ": it has some, but not all files of server ",
                                                      server, " of commit ", manifest.commit())));
    }
    servers_ = servers;
    AmountCounter amount(calls_, "copying", "files");
    amount.Expect(static_cast<uint64_t>(manifest.files_size()));
    for (const v1::RowFile& file : manifest.files()) {
      if (servers.count(file.server()) != 0) CISTERN_RETURN_IF_ERROR(PutFile(file));
      amount.Done();
    }
    return absl::OkStatus();
  }

  // What the servers of this state have prepared last.
  absl::StatusOr<std::vector<CopyRecord>> Prepared() const {
    std::vector<CopyRecord> records;
    CISTERN_ASSIGN_OR_RETURN(const std::vector<std::string> names, files_.List(state_.path()));
    for (const std::string& name : names) {
      if (!absl::StartsWith(name, kPreparedPrefix) || absl::StrContains(name, ".")) continue;
      CISTERN_ASSIGN_OR_RETURN(records.emplace_back(), ReadCopyRecord(files_, state_.path(), name));
    }
    return records;
  }

  // Copies what servers wait for before their commit.
  absl::Status PutPrepared() {
    CISTERN_ASSIGN_OR_RETURN(const std::vector<CopyRecord> prepared, Prepared());
    for (const CopyRecord& record : prepared) {
      if (record.commit <= pushed_.commit) continue;  // committed since
      for (const std::string& name : record.files) CISTERN_RETURN_IF_ERROR(PutPreparedFile(name));
    }
    return absl::OkStatus();
  }

  absl::Status PutPreparedFile(const std::string& name) {
    const std::optional<RowFileName> parsed = ParseRowFileName(name);
    if (!parsed.has_value()) {
      return BadFile(absl::DataLossError(
          absl::StrCat(state_.path(), "/", kPreparedPrefix, "*: '", name, "' is no row file")));
    }
    v1::RowFile file;  // its hash stands in the file itself
    file.set_name(name);
    file.set_base(parsed->base);
    file.set_commit(parsed->commit);
    file.set_epoch(parsed->epoch);
    file.set_server(parsed->server);
    const absl::Status put = PutFile(file);
    // The pass was prepared anew meanwhile.
    CISTERN_ASSIGN_OR_RETURN(const bool here,
                             files_.Exists(absl::StrCat(state_.data_path(), "/", name)));
    return here ? put : absl::OkStatus();
  }

  absl::Status PutManifest(const ParsedManifest& newest) {
    const uint64_t commit = newest.manifest.commit();
    if (pushed_.whole_commit >= commit) return absl::OkStatus();
    // Those that other servers have put there meanwhile.
    CISTERN_ASSIGN_OR_RETURN(there_, place_->List("data"));
    for (const v1::RowFile& file : newest.manifest.files()) {
      const auto found = there_.find(file.name());
      if (found == there_.end() || found->second != file.bytes()) return absl::OkStatus();
    }
    CISTERN_RETURN_IF_ERROR(place_->Put(absl::StrCat(state_.path(), "/", ManifestName(commit)),
                                        ManifestName(commit),
                                        absl::StrCat(servers_.empty() ? 0 : *servers_.begin())));
    const bool gap = pushed_.whole_commit + 1 != commit;
    pushed_.whole_commit = checked_ = commit;
    return RemoveOld(commit, gap ? 1 : options_.keep);
  }

  // Removes manifests that are not among the newest `keep`, and row files of this state that none
  // of those that stay names. Another server's push may not have put the manifest yet that names
  // its files.
  absl::Status RemoveOld(uint64_t newest, uint64_t keep) {
    CISTERN_ASSIGN_OR_RETURN(const auto manifests, place_->List("manifest"));
    std::set<std::string> named = own_;
    for (const auto& [name, bytes] : manifests) {
      const uint64_t commit = NumberOfName(name);
      if (commit == 0 || commit > newest) continue;
      if (newest - commit >= keep) {
        CISTERN_RETURN_IF_ERROR(place_->Remove(ManifestName(commit)));
        continue;
      }
      const absl::StatusOr<ParsedManifest> kept = ReadManifest(commit);
      if (absl::IsNotFound(kept.status())) continue;  // another push has removed it
      CISTERN_RETURN_IF_ERROR(kept.status());
      for (const v1::RowFile& file : kept->manifest.files()) named.insert(file.name());
    }
    for (const auto& [name, bytes] : there_) {
      const std::optional<RowFileName> parsed = ParseRowFileName(name);
      if (!parsed || named.count(name) != 0 || parsed->commit > newest) continue;
      if (servers_.count(parsed->server) == 0) continue;
      CISTERN_RETURN_IF_ERROR(place_->Remove(DataName(name)));
    }
    return absl::OkStatus();
  }

  absl::Status Tell() const {
    CopyRecord record;
    record.commit = pushed_.whole_commit;
    for (const std::string& name : own_) {
      if (there_.count(name) != 0) record.files.insert(name);
    }
    return WriteCopyRecord(files_, state_.path(), kCopiedRecord, record);
  }

  FileSystem& files_;
  const StateFolder& state_;
  const PushStateOptions& options_;
  const JobCalls& calls_;
  const std::unique_ptr<CopyPlace> place_;
  std::map<std::string, uint64_t> there_;  // the row files of the copy
  std::set<std::string> own_;              // of this state: the newest commit's and the prepared
  std::set<uint32_t> servers_;             // whose files this state has
  uint64_t checked_ = 0;                   // the commit of the copy that CheckDescent has read
  PushedState pushed_;
};

bool Passes(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsResourceExhausted(status) ||
         absl::IsDeadlineExceeded(status) || absl::IsPermissionDenied(status) ||
         absl::IsAborted(status) || absl::IsInternal(status) || absl::IsNotFound(status);
}

// --- pull

// The locks of a state that no server uses.
absl::StatusOr<std::vector<std::unique_ptr<FileLock>>> LockServers(FileSystem& files,
                                                                   const std::string& state,
                                                                   uint32_t server_num) {
  std::vector<std::unique_ptr<FileLock>> locks;
  for (uint32_t server = 0; server < server_num; ++server) {
    absl::StatusOr<std::unique_ptr<FileLock>> lock =
        files.Lock(absl::StrCat(state, "/lock-", server));
    if (absl::IsFailedPrecondition(lock.status())) {
      return WithFix(
          absl::FailedPreconditionError(absl::StrCat(state, " is in use by server ", server)),
          "stop the server that uses this folder, then repeat this command");
    }
    CISTERN_RETURN_IF_ERROR(lock.status());
    locks.push_back(*std::move(lock));
  }
  return locks;
}

// The manifest in a file, or the newest one of a state.
absl::StatusOr<ParsedManifest> ManifestAt(FileSystem& files, const std::string& path) {
  const absl::StatusOr<std::unique_ptr<StateFolder>> state = FindState(files, path);
  if (state.ok()) return ReadCommit(**state, 0);
  const absl::StatusOr<ParsedManifest> parsed = ReadManifestFile(files, path);
  if (!absl::IsNotFound(parsed.status()) && !absl::IsInvalidArgument(parsed.status())) {
    return parsed.ok() ? parsed : BadFile(parsed.status());
  }
  return WithFix(absl::InvalidArgumentError(
                     absl::StrCat(path, " is neither a manifest nor a state of servers")),
                 "name a file of manifest/ in a state folder, or a data_dir");
}

class Pull {
 public:
  Pull(FileSystem& files, const PullStateOptions& options, const JobCalls& calls)
      : files_(files),
        options_(options),
        calls_(calls),
        place_(CopyPlace::At(files, options.from)),
        state_(StateFolderOf(options.to)),
        fresh_(absl::StrCat(options.to, "/", kPulling)) {}

  absl::StatusOr<PulledState> Run() {
    CISTERN_RETURN_IF_ERROR(files_.MakeFolders(options_.to));
    for (const char* folder : {"epoch", "manifest", "data"}) {
      CISTERN_RETURN_IF_ERROR(files_.MakeFolders(absl::StrCat(fresh_, "/", folder)));
    }
    CISTERN_ASSIGN_OR_RETURN(const ParsedManifest commit, FindCommit());
    CISTERN_ASSIGN_OR_RETURN(const std::vector<v1::RowFile> wanted, FilesOf(commit.manifest));
    CISTERN_ASSIGN_OR_RETURN(const auto locks, CheckTarget(commit));
    CISTERN_RETURN_IF_ERROR(Fetch(wanted));
    CISTERN_RETURN_IF_ERROR(Name(commit));
    pulled_.commit = commit.manifest.commit();
    pulled_.pass = commit.manifest.pass();
    return pulled_;
  }

 private:
  absl::StatusOr<ParsedManifest> FindCommit() {
    if (!options_.manifest.empty()) return ManifestAt(files_, options_.manifest);
    CISTERN_ASSIGN_OR_RETURN(const auto manifests, place_->List("manifest"));
    std::set<uint64_t> commits;
    for (const auto& [name, bytes] : manifests) {
      if (NumberOfName(name) > 0) commits.insert(NumberOfName(name));
    }
    if (commits.empty()) {
      return WithFix(
          absl::InvalidArgumentError(absl::StrCat(place_->PathOf(""), " has no commit")),
          "name a copy that cistern ckpt push has made, or the data_dir of stopped servers");
    }
    const uint64_t commit = options_.commit == 0 ? *commits.rbegin() : options_.commit;
    if (commits.count(commit) == 0) {
      return WithFix(
          absl::InvalidArgumentError(absl::StrCat(place_->PathOf(""), " has no commit ", commit)),
          absl::StrCat("existing commits: ", absl::StrJoin(commits, ", ")));
    }
    return CopiedManifest(*place_, commit, files_, fresh_);
  }

  // Those that the server needs; or all.
  absl::StatusOr<std::vector<v1::RowFile>> FilesOf(const v1::Manifest& manifest) const {
    std::vector<v1::RowFile> all(manifest.files().begin(), manifest.files().end());
    if (!options_.server.has_value()) return all;
    const uint64_t servers = options_.server_num == 0 ? manifest.server_num() : options_.server_num;
    if (*options_.server >= servers) {
      return WithFix(absl::InvalidArgumentError(absl::StrCat("server ", *options_.server, " of ",
                                                             servers, " does not exist")),
                     absl::StrCat("ranks are 0 to ", servers - 1));
    }
    CISTERN_ASSIGN_OR_RETURN(
        const ShardMap map, ShardMap::Create(manifest.shard_num(), static_cast<uint32_t>(servers)));
    std::vector<v1::RowFile> own;
    for (const v1::RowFile& file : all) {
      if (HoldsRowsOf(file, map, static_cast<uint32_t>(*options_.server))) own.push_back(file);
    }
    return own;
  }

  absl::StatusOr<std::vector<std::unique_ptr<FileLock>>> CheckTarget(const ParsedManifest& commit) {
    CISTERN_ASSIGN_OR_RETURN(const bool there, files_.Exists(state_));
    if (!there) return std::vector<std::unique_ptr<FileLock>>();
    const auto old = StateFolder::OpenToRead(files_, state_);
    uint64_t newest = 0;
    if (old.ok()) {
      CISTERN_ASSIGN_OR_RETURN(const std::vector<uint64_t> commits, (*old)->Commits());
      if (!commits.empty()) newest = commits.back();
    }
    const absl::StatusOr<std::vector<std::string>> data = files_.List(state_ + "/data");
    const bool empty = newest == 0 && (!data.ok() || data->empty());
    if (!empty && !options_.replace) {
      return WithOptions(
          WithFix(absl::AlreadyExistsError(absl::StrCat(
                      state_, newest > 0 ? absl::StrCat(" holds commits up to ", newest)
                                         : std::string(" holds row files"))),
                  "name another data_dir, or have this state moved aside"),
          {"replace"});
    }
    CISTERN_ASSIGN_OR_RETURN(auto locks,
                             LockServers(files_, state_,
                                         static_cast<uint32_t>(std::max<uint64_t>(
                                             commit.manifest.server_num(), options_.server_num))));
    if (old.ok()) {
      CISTERN_ASSIGN_OR_RETURN(old_term_, (*old)->NewestTerm());
    }
    return locks;
  }

  absl::Status Fetch(const std::vector<v1::RowFile>& wanted) {
    const std::string data = fresh_ + "/data";
    std::set<std::string> names;
    AmountCounter amount(calls_, "copying", "files");
    amount.Expect(wanted.size());
    for (const v1::RowFile& file : wanted) {
      CISTERN_RETURN_IF_ERROR(calls_.CheckStop());
      names.insert(file.name());
      const std::string local = absl::StrCat(data, "/", file.name());
      // An interrupted call has fetched it.
      if (!VerifyFile(files_, data, file).ok()) {
        CISTERN_RETURN_IF_ERROR(RemoveIfThere(files_, local));
        const absl::Status got = place_->Get(DataName(file.name()), local);
        if (absl::IsNotFound(got)) {
          return BadFile(absl::DataLossError(
              absl::StrCat(place_->PathOf(DataName(file.name())), ": the copy lacks this file")));
        }
        CISTERN_RETURN_IF_ERROR(got);
        CISTERN_RETURN_IF_ERROR(BadFile(
            AddContext(VerifyFile(files_, data, file), place_->PathOf(DataName(file.name())))));
      }
      ++pulled_.files;
      pulled_.bytes += file.bytes();
      amount.Done();
    }
    // Of an interrupted call for another commit.
    CISTERN_ASSIGN_OR_RETURN(const std::vector<std::string> found, files_.List(data));
    for (const std::string& name : found) {
      if (names.count(name) == 0) {
        CISTERN_RETURN_IF_ERROR(files_.Remove(absl::StrCat(data, "/", name)));
      }
    }
    return files_.SyncFolder(data);
  }

  // Writes the manifest and a claim, moves the old folder aside, and gives the new one its name.
  absl::Status Name(const ParsedManifest& commit) {
    CISTERN_ASSIGN_OR_RETURN(const auto fresh, StateFolder::OpenToRead(files_, fresh_));
    CISTERN_ASSIGN_OR_RETURN(const std::vector<uint64_t> commits, fresh->Commits());
    for (const uint64_t number : commits) {
      CISTERN_RETURN_IF_ERROR(files_.Remove(absl::StrCat(fresh_, "/", ManifestName(number))));
    }
    CISTERN_RETURN_IF_ERROR(fresh->WriteManifest(commit.manifest, commit.self_xxh3).status());
    CISTERN_ASSIGN_OR_RETURN(const Term term, fresh->NewestTerm());
    if (old_term_ > term) {
      CISTERN_RETURN_IF_ERROR(fresh->CreateTerm(ParseClaim(old_term_, "")));
    }
    if (options_.server.has_value()) {
      CISTERN_RETURN_IF_ERROR(fresh->SetOwner(static_cast<uint32_t>(*options_.server)));
    }
    CISTERN_ASSIGN_OR_RETURN(const bool there, files_.Exists(state_));
    for (int attempt = 1; there; ++attempt) {
      const std::string aside = absl::StrCat(state_, ".replaced-", attempt);
      const absl::Status moved = files_.Publish(state_, aside);
      if (absl::IsAlreadyExists(moved)) continue;
      CISTERN_RETURN_IF_ERROR(moved);
      pulled_.moved = aside;
      break;
    }
    CISTERN_RETURN_IF_ERROR(files_.Publish(fresh_, state_));
    return files_.SyncFolder(options_.to);
  }

  FileSystem& files_;
  const PullStateOptions& options_;
  const JobCalls& calls_;
  const std::unique_ptr<CopyPlace> place_;
  const std::string state_, fresh_;
  Term old_term_ = 0;
  PulledState pulled_;
};

}  // namespace

absl::StatusOr<PushedState> PushState(const PushStateOptions& options, const JobCalls& calls,
                                      const OnPushed& pushed) {
  LocalFileSystem files;
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<StateFolder> state, StateAt(files, options.state));
  const absl::StatusOr<std::unique_ptr<FileLock>> lock = files.Lock(state->path() + "/lock-push");
  if (absl::IsFailedPrecondition(lock.status())) {
    return WithFix(absl::FailedPreconditionError(
                       absl::StrCat(state->path(), " is being copied by another process")),
                   "wait until it ends, or stop it");
  }
  CISTERN_RETURN_IF_ERROR(lock.status());
  Push push(files, *state, options, calls);
  if (!options.follow) {
    CISTERN_RETURN_IF_ERROR(push.StepInTime().status());
    return push.pushed();
  }
  // Other servers may still be copying their files of this commit: looks again after a while even
  // if nothing changes here.
  constexpr auto kOthers = std::chrono::seconds(1);
  std::pair<uint64_t, std::string> done, tried;  // what Mark said
  std::string last_fault;
  auto next = std::chrono::steady_clock::now();
  bool whole = false;
  while (calls.CheckStop().ok()) {
    const auto now = std::chrono::steady_clock::now();
    const absl::StatusOr<std::pair<uint64_t, std::string>> mark = push.Mark();
    if (mark.ok() && (*mark != done || !whole) && (now >= next || *mark != tried)) {
      const uint64_t before = push.pushed().files;
      tried = *mark;
      const absl::StatusOr<bool> step = push.StepInTime();
      if (step.ok()) {
        done = *mark;
        whole = *step;
        last_fault.clear();
        if (pushed && push.pushed().files != before) pushed(push.pushed());
      } else if (!absl::IsCancelled(step.status())) {
        if (!Passes(step.status())) return step.status();
        const std::string fault(step.status().message());
        if (fault != last_fault) calls.Note(absl::StrCat("warning: ", fault, "; trying again"));
        last_fault = fault;
        whole = false;
      }
      next = std::chrono::steady_clock::now() + kOthers;
    } else if (!mark.ok() && !Passes(mark.status())) {
      return mark.status();
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(options.poll_ms));
  }
  return push.pushed();
}

absl::StatusOr<PulledState> PullState(const PullStateOptions& options, const JobCalls& calls) {
  LocalFileSystem files;
  return Pull(files, options, calls).Run();
}

absl::StatusOr<PulledState> AdoptManifest(const AdoptManifestOptions& options) {
  LocalFileSystem files;
  CISTERN_ASSIGN_OR_RETURN(const ParsedManifest commit, ManifestAt(files, options.from));
  const v1::Manifest& manifest = commit.manifest;
  if (options.server >= manifest.server_num()) {
    return WithFix(
        absl::InvalidArgumentError(absl::StrCat("server ", options.server, " of ",
                                                manifest.server_num(), " does not exist")),
        absl::StrCat("ranks are 0 to ", manifest.server_num() - 1));
  }
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<StateFolder> state, StateAt(files, options.to));
  CISTERN_ASSIGN_OR_RETURN(const auto locks,
                           LockServers(files, state->path(), manifest.server_num()));
  CISTERN_ASSIGN_OR_RETURN(const ShardMap map,
                           ShardMap::Create(manifest.shard_num(), manifest.server_num()));
  PulledState adopted;
  adopted.commit = manifest.commit();
  adopted.pass = manifest.pass();
  std::vector<std::string> missing;
  for (const v1::RowFile& file : manifest.files()) {
    if (!HoldsRowsOf(file, map, static_cast<uint32_t>(options.server))) continue;
    const absl::Status whole = VerifyFile(files, state->data_path(), file);
    if (!whole.ok()) missing.push_back(file.name());
    ++adopted.files;
    adopted.bytes += file.bytes();
  }
  if (!missing.empty()) {
    return WithFix(
        BadFile(absl::DataLossError(absl::StrCat(
            state->path(), " lacks files of server ", options.server, " of commit ",
            manifest.commit(), ", or they are corrupt: ", absl::StrJoin(missing, ", ")))),
        "take them from a copy, with the same manifest: cistern ckpt pull");
  }
  CISTERN_ASSIGN_OR_RETURN(const std::optional<ParsedManifest> newest, state->NewestManifest());
  const uint64_t mine = newest.has_value() ? newest->manifest.commit() : 0;
  if (mine > manifest.commit() ||
      (mine == manifest.commit() && newest->self_xxh3 != commit.self_xxh3)) {
    return absl::FailedPreconditionError(
        absl::StrCat(state->path(), " holds commit ", mine,
                     mine > manifest.commit() ? absl::StrCat(", newer than ", manifest.commit())
                                              : std::string(" of another training")));
  }
  if (mine < manifest.commit()) {
    CISTERN_RETURN_IF_ERROR(state->WriteManifest(manifest, commit.self_xxh3).status());
    CISTERN_ASSIGN_OR_RETURN(const Term newest_term, state->NewestTerm());
    CISTERN_RETURN_IF_ERROR(state->CheckTermsAreLeft(newest_term));
    CISTERN_RETURN_IF_ERROR(state->CreateTerm(ParseClaim(newest_term + 1, "")));
  }
  // Manifests that do not follow one another would be taken for a loss.
  CISTERN_RETURN_IF_ERROR(state->RemoveOld(manifest.commit(), 1));
  return adopted;
}

}  // namespace cistern::app
