#include "app/state/pull_state.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "app/state/copied_files.h"
#include "app/state/copy_place.h"
#include "common/io/new_file.h"
#include "common/value/shard_map.h"
#include "server/checkpoint/compaction.h"

namespace cistern::app {
namespace {

constexpr char kPulling[] = "state.pulling";

class Pull {
 public:
  Pull(FileSystem& files, const PullStateOptions& options, const JobCalls& calls)
      : files_(files),
        options_(options),
        calls_(calls),
        place_(CopyPlace::At(files, options.from)),
        state_(server::StateFolderOf(options.to)),
        fresh_(absl::StrCat(options.to, "/", kPulling)) {}

  absl::StatusOr<PulledState> Run() {
    CISTERN_RETURN_IF_ERROR(files_.MakeFolders(options_.to));
    for (const char* folder : {"epoch", "manifest", "data"}) {
      CISTERN_RETURN_IF_ERROR(files_.MakeFolders(absl::StrCat(fresh_, "/", folder)));
    }
    CISTERN_ASSIGN_OR_RETURN(const server::ParsedManifest commit, FindCommit());
    CISTERN_ASSIGN_OR_RETURN(const std::vector<v1::RowFile> wanted, FilesOf(commit.manifest));
    CISTERN_ASSIGN_OR_RETURN(const auto locks, CheckTarget(commit));
    CISTERN_RETURN_IF_ERROR(Fetch(wanted));
    CISTERN_RETURN_IF_ERROR(Name(commit));
    pulled_.commit = commit.manifest.commit();
    pulled_.pass = commit.manifest.pass();
    return pulled_;
  }

 private:
  absl::StatusOr<server::ParsedManifest> FindCommit() {
    if (!options_.manifest.empty()) return ManifestAt(files_, options_.manifest);
    CISTERN_ASSIGN_OR_RETURN(const auto manifests, place_->List("manifest"));
    std::set<uint64_t> commits;
    for (const auto& [name, bytes] : manifests) {
      if (server::NumberOfName(name) > 0) commits.insert(server::NumberOfName(name));
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
      if (server::HoldsRowsOf(file, map, static_cast<uint32_t>(*options_.server)))
        own.push_back(file);
    }
    return own;
  }

  absl::StatusOr<std::vector<std::unique_ptr<FileLock>>> CheckTarget(
      const server::ParsedManifest& commit) {
    CISTERN_ASSIGN_OR_RETURN(const bool there, files_.Exists(state_));
    if (!there) return std::vector<std::unique_ptr<FileLock>>();
    const auto old = server::StateFolder::OpenToRead(files_, state_);
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
  absl::Status Name(const server::ParsedManifest& commit) {
    CISTERN_ASSIGN_OR_RETURN(const auto fresh, server::StateFolder::OpenToRead(files_, fresh_));
    CISTERN_ASSIGN_OR_RETURN(const std::vector<uint64_t> commits, fresh->Commits());
    for (const uint64_t number : commits) {
      CISTERN_RETURN_IF_ERROR(files_.Remove(absl::StrCat(fresh_, "/", ManifestName(number))));
    }
    CISTERN_RETURN_IF_ERROR(fresh->WriteManifest(commit.manifest, commit.self_xxh3).status());
    CISTERN_ASSIGN_OR_RETURN(const Term term, fresh->NewestTerm());
    if (old_term_ > term) {
      CISTERN_RETURN_IF_ERROR(fresh->CreateTerm(server::ParseClaim(old_term_, "")));
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

absl::StatusOr<PulledState> PullState(const PullStateOptions& options, const JobCalls& calls) {
  LocalFileSystem files;
  return Pull(files, options, calls).Run();
}

}  // namespace cistern::app
