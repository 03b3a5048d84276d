#include "app/state/push_state.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "app/state/copied_files.h"
#include "app/state/copy_place.h"
#include "app/state/saved_place.h"
#include "server/checkpoint/copy_record.h"
#include "server/checkpoint/row_file.h"

namespace cistern::app {
namespace {

// One state and its copy.
class Push {
 public:
  Push(FileSystem& files, const server::StateFolder& state, const PushStateOptions& options,
       const JobCalls& calls)
      : files_(files),
        state_(state),
        options_(options),
        calls_(calls),
        place_(CopyPlace::At(files, options.to)) {}

  // Copies what is new. Returns whether the copy has all of the newest commit, of this server and
  // the others.
  absl::StatusOr<bool> Step() {
    CISTERN_ASSIGN_OR_RETURN(const std::optional<server::ParsedManifest> newest,
                             state_.NewestManifest());
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
    CISTERN_RETURN_IF_ERROR(WriteRecord());
    return pushed_.whole_commit >= pushed_.commit;
  }

  // Differs after each change of the state: Step is then due.
  absl::StatusOr<std::pair<uint64_t, std::string>> Mark() const {
    CISTERN_ASSIGN_OR_RETURN(const std::vector<uint64_t> commits, state_.Commits());
    CISTERN_ASSIGN_OR_RETURN(const std::vector<server::CopyRecord> prepared, Prepared());
    std::string texts;
    for (const server::CopyRecord& record : prepared)
      absl::StrAppend(&texts, server::FormatCopyRecord(record));
    return std::pair(commits.empty() ? 0 : commits.back(), texts);
  }

  // Step, again if the server has removed the commit meanwhile, as it does with old ones.
  absl::StatusOr<bool> StepInTime() {
    constexpr int kMaxTries = 5;
    for (int attempt = 1;; ++attempt) {
      CISTERN_ASSIGN_OR_RETURN(const auto before, Mark());
      absl::StatusOr<bool> step = Step();
      if (!absl::IsDataLoss(step.status()) && !absl::IsNotFound(step.status())) return step;
      CISTERN_ASSIGN_OR_RETURN(const auto after, Mark());
      if (after == before || attempt == kMaxTries) return step;
    }
  }

  const PushedState& pushed() const { return pushed_; }

 private:
  // The copy must hold commits of this state, as far as both still have one of the same number.
  absl::Status CheckDescent(const server::ParsedManifest& newest) {
    CISTERN_ASSIGN_OR_RETURN(const auto manifests, place_->List("manifest"));
    uint64_t commit = 0;
    for (const auto& [name, bytes] : manifests)
      commit = std::max(commit, server::NumberOfName(name));
    pushed_.whole_commit = commit;
    if (commit == 0 || commit == checked_) return absl::OkStatus();
    CISTERN_ASSIGN_OR_RETURN(const server::ParsedManifest copied, ReadManifest(commit));
    const uint64_t mine = newest.manifest.commit();
    const absl::StatusOr<server::ParsedManifest> same = state_.ReadManifest(commit);
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

  absl::StatusOr<server::ParsedManifest> ReadManifest(uint64_t commit) {
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
  absl::StatusOr<std::vector<server::CopyRecord>> Prepared() const {
    std::vector<server::CopyRecord> records;
    CISTERN_ASSIGN_OR_RETURN(const std::vector<std::string> names, files_.List(state_.path()));
    for (const std::string& name : names) {
      if (!absl::StartsWith(name, server::kPreparedPrefix) || absl::StrContains(name, "."))
        continue;
      CISTERN_ASSIGN_OR_RETURN(records.emplace_back(),
                               server::ReadCopyRecord(files_, state_.path(), name));
    }
    return records;
  }

  // Copies what servers wait for before their commit.
  absl::Status PutPrepared() {
    CISTERN_ASSIGN_OR_RETURN(const std::vector<server::CopyRecord> prepared, Prepared());
    for (const server::CopyRecord& record : prepared) {
      if (record.commit <= pushed_.commit) continue;  // committed since
      for (const std::string& name : record.files) CISTERN_RETURN_IF_ERROR(PutPreparedFile(name));
    }
    return absl::OkStatus();
  }

  absl::Status PutPreparedFile(const std::string& name) {
    const std::optional<server::RowFileName> parsed = server::ParseRowFileName(name);
    if (!parsed.has_value()) {
      return BadFile(absl::DataLossError(absl::StrCat(state_.path(), "/", server::kPreparedPrefix,
                                                      "*: '", name, "' is no row file")));
    }
    v1::RowFile file;  // its hash is in the file itself
    file.set_name(name);
    file.set_base(parsed->base);
    file.set_commit(parsed->commit);
    file.set_epoch(parsed->term);
    file.set_server(parsed->server);
    const absl::Status put = PutFile(file);
    // The pass was prepared anew meanwhile.
    CISTERN_ASSIGN_OR_RETURN(const bool here,
                             files_.Exists(absl::StrCat(state_.data_path(), "/", name)));
    return here ? put : absl::OkStatus();
  }

  absl::Status PutManifest(const server::ParsedManifest& newest) {
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
      const uint64_t commit = server::NumberOfName(name);
      if (commit == 0 || commit > newest) continue;
      if (newest - commit >= keep) {
        CISTERN_RETURN_IF_ERROR(place_->Remove(ManifestName(commit)));
        continue;
      }
      const absl::StatusOr<server::ParsedManifest> kept = ReadManifest(commit);
      if (absl::IsNotFound(kept.status())) continue;  // another push has removed it
      CISTERN_RETURN_IF_ERROR(kept.status());
      for (const v1::RowFile& file : kept->manifest.files()) named.insert(file.name());
    }
    for (const auto& [name, bytes] : there_) {
      const std::optional<server::RowFileName> parsed = server::ParseRowFileName(name);
      if (!parsed || named.count(name) != 0 || parsed->commit > newest) continue;
      if (servers_.count(parsed->server) == 0) continue;
      CISTERN_RETURN_IF_ERROR(place_->Remove(DataName(name)));
    }
    return absl::OkStatus();
  }

  absl::Status WriteRecord() const {
    server::CopyRecord record;
    record.commit = pushed_.whole_commit;
    for (const std::string& name : own_) {
      if (there_.count(name) != 0) record.files.insert(name);
    }
    return server::WriteCopyRecord(files_, state_.path(), server::kCopiedRecord, record);
  }

  FileSystem& files_;
  const server::StateFolder& state_;
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

}  // namespace

absl::StatusOr<PushedState> PushState(const PushStateOptions& options, const JobCalls& calls,
                                      const OnPushed& pushed) {
  LocalFileSystem files;
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<server::StateFolder> state,
                           FindGivenState(files, options.state));
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

}  // namespace cistern::app
