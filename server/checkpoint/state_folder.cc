#include "server/checkpoint/state_folder.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/json_memory.h"
#include "common/io/new_file.h"

namespace cistern::server {
namespace {

constexpr char kOwnerName[] = "local-server";
constexpr uint64_t kMaxOwnerBytes = 64;

// Far above any real manifest: the files of 10,000 servers.
constexpr uint64_t kMaxManifestBytes = uint64_t{256} << 20;

absl::Status BrokenPromise(const std::string& path, const std::string& what) {
  return WithOptions(
      absl::InvalidArgumentError(absl::StrCat(
          path, ": this file system ", what,
          ", so two writers could both believe that they decided a commit; put data_dir on a local "
          "disk or on NFS with exclusive names (version 4, mounted without nolock), or start "
          "without durability")),
      {"cistern-server.durability"});
}

absl::Status MakeEmptyFile(FileSystem& files, const std::string& path) {
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file, files.Create(path));
  return file->Close();
}

// Claims and decisions rely on exclusive names. Network file systems may promise these and not
// deliver (link and exclusive create over NFS 2 and 3, and some user-space ones), so each way to
// create a name is tried twice before anything depends on it.
absl::Status TryExclusiveNames(FileSystem& files, const std::string& path, uint32_t server) {
  const std::string first = absl::StrCat(path, "/probe-", server), second = first + "-named";
  CISTERN_RETURN_IF_ERROR(RemoveIfThere(files, first));
  CISTERN_RETURN_IF_ERROR(RemoveIfThere(files, second));
  CISTERN_RETURN_IF_ERROR(MakeEmptyFile(files, first));
  const absl::Status created = MakeEmptyFile(files, first);
  if (created.ok()) return BrokenPromise(path, "creates a file that already exists");
  if (!absl::IsAlreadyExists(created)) return created;
  CISTERN_RETURN_IF_ERROR(files.Publish(first, second));
  CISTERN_ASSIGN_OR_RETURN(const bool old_name, files.Exists(first));
  CISTERN_ASSIGN_OR_RETURN(const bool new_name, files.Exists(second));
  if (old_name || !new_name) return BrokenPromise(path, "does not rename files");
  CISTERN_RETURN_IF_ERROR(MakeEmptyFile(files, first));
  const absl::Status published = files.Publish(first, second);
  if (published.ok()) return BrokenPromise(path, "renames a file to a name that is taken");
  if (!absl::IsAlreadyExists(published)) return published;
  CISTERN_RETURN_IF_ERROR(RemoveIfThere(files, first));
  return RemoveIfThere(files, second);
}

// The lock of server `locked` is held when server `server` wants it.
absl::Status InUse(const std::string& path, uint32_t locked, uint32_t server) {
  if (locked == server) {
    return WithOptions(absl::FailedPreconditionError(absl::StrCat(
                           path, ": another process is server ", server,
                           " of this state; stop it, or use another rank or data_dir")),
                       {"cistern-server.rank", "cistern-server.data_dir"});
  }
  return WithOptions(absl::FailedPreconditionError(absl::StrCat(
                         path,
                         ": another process uses this folder, and a local state needs one of "
                         "its own; give each server another data_dir")),
                     {"cistern-server.data_dir", "cistern-server.local_state"});
}

absl::Status MissingFolder(const std::string& path) {
  return WithOptions(absl::DataLossError(absl::StrCat(
                         path,
                         ": the folder manifest/ is missing, and data/ holds files of its commits: "
                         "restore it from a copy, or use another data_dir")),
                     {"cistern-server.data_dir"});
}

// The newest commit whose existence a file in the folder proves, and that file.
struct ProvenCommit {
  uint64_t commit = 0;
  std::string by;

  void Update(uint64_t other, const std::string& other_by) {
    if (other <= commit) return;
    commit = other;
    by = other_by;
  }
};

// The delta of commit c is written after commit c - 1 is decided, and only decided commits are
// merged. Any other base proves nothing: ckpt reshard writes one before the first manifest.
uint64_t CommitProvenBy(const RowFileName& name) {
  if (!name.base) return name.commit == 0 ? 0 : name.commit - 1;
  return name.attempt > kFirstMergeAttempt ? name.commit : 0;
}

}  // namespace

absl::StatusOr<ParsedManifest> ReadManifestFile(FileSystem& files, const std::string& path) {
  CISTERN_ASSIGN_OR_RETURN(const std::string text, ReadWhole(files, path, kMaxManifestBytes));
  ExpectMemoryForJson(text.size());
  absl::StatusOr<ParsedManifest> parsed = ParseManifest(text);
  if (!parsed.ok()) return AddContext(parsed.status(), path);
  return parsed;
}

std::string FormatRowFileName(const RowFileName& name) {
  return absl::StrCat(name.base ? "base-" : "delta-", name.commit, "-", name.term, "-", name.server,
                      name.attempt > 0 ? absl::StrCat(".", name.attempt) : "");
}

std::optional<RowFileName> ParseRowFileName(const std::string& name) {
  RowFileName parsed;
  const std::vector<std::string> attempt = absl::StrSplit(name, '.');
  const std::vector<std::string> parts = absl::StrSplit(attempt[0], '-');
  if (attempt.size() > 2 || parts.size() != 4) return std::nullopt;
  parsed.base = parts[0] == "base";
  if ((!parsed.base && parts[0] != "delta") || !absl::SimpleAtoi(parts[1], &parsed.commit) ||
      !absl::SimpleAtoi(parts[2], &parsed.term) || !absl::SimpleAtoi(parts[3], &parsed.server) ||
      (attempt.size() == 2 && !absl::SimpleAtoi(attempt[1], &parsed.attempt))) {
    return std::nullopt;
  }
  if (parsed.attempt > kMaxAttempt) return std::nullopt;
  if (FormatRowFileName(parsed) != name) return std::nullopt;
  return parsed;
}

absl::StatusOr<std::unique_ptr<StateFolder>> StateFolder::Open(FileSystem& files,
                                                               const std::string& path,
                                                               uint32_t server, uint32_t alone_of) {
  // data/ is created last, so a crash cannot leave it without manifest/.
  CISTERN_ASSIGN_OR_RETURN(const bool has_data, files.Exists(path + "/data"));
  CISTERN_ASSIGN_OR_RETURN(const bool has_manifests, files.Exists(path + "/manifest"));
  if (has_data && !has_manifests) return MissingFolder(path);
  for (const char* folder : {"epoch", "manifest", "data"}) {
    CISTERN_RETURN_IF_ERROR(files.MakeFolders(absl::StrCat(path, "/", folder)));
  }
  std::unique_ptr<StateFolder> state(new StateFolder(files, path));
  CISTERN_RETURN_IF_ERROR(state->CheckManifests());
  for (uint32_t locked = 0; locked < std::max(alone_of, server + 1); ++locked) {
    if (alone_of == 0 && locked != server) continue;
    absl::StatusOr<std::unique_ptr<FileLock>> lock =
        files.Lock(absl::StrCat(path, "/lock-", locked));
    if (absl::IsFailedPrecondition(lock.status())) return InUse(path, locked, server);
    CISTERN_RETURN_IF_ERROR(lock.status());
    state->locks_.push_back(*std::move(lock));
  }
  CISTERN_RETURN_IF_ERROR(state->ReadOwner());
  CISTERN_RETURN_IF_ERROR(state->CheckOwner(server, alone_of > 0));
  CISTERN_RETURN_IF_ERROR(TryExclusiveNames(files, path, server));
  return state;
}

absl::StatusOr<std::unique_ptr<StateFolder>> StateFolder::OpenToRead(FileSystem& files,
                                                                     const std::string& path) {
  CISTERN_ASSIGN_OR_RETURN(const bool there, files.Exists(path + "/manifest"));
  if (!there) {
    return absl::NotFoundError(
        absl::StrCat(path, " is not a cluster's state folder (it has no folder manifest/)"));
  }
  std::unique_ptr<StateFolder> state(new StateFolder(files, path));
  CISTERN_RETURN_IF_ERROR(state->ReadOwner());
  return state;
}

absl::Status StateFolder::ReadOwner() {
  const absl::StatusOr<std::string> text =
      ReadWhole(files_, absl::StrCat(path_, "/", kOwnerName), kMaxOwnerBytes);
  if (absl::IsNotFound(text.status())) return absl::OkStatus();
  CISTERN_RETURN_IF_ERROR(text.status());
  uint32_t server = 0;
  // Empty after a loss of power: then it is written again.
  if (absl::SimpleAtoi(*text, &server)) owner_ = server;
  return absl::OkStatus();
}

absl::Status StateFolder::CheckOwner(uint32_t server, bool alone) const {
  if (owner_.has_value() && !alone) {
    return WithOptions(absl::FailedPreconditionError(absl::StrCat(
                           path_, " is the state of server ", *owner_,
                           " alone; start all servers with local states, or on a whole copy")),
                       {"cistern-server.local_state", "cistern-server.data_dir"});
  }
  if (!alone || !owner_.has_value() || owner_ == server) return absl::OkStatus();
  return WithOptions(absl::FailedPreconditionError(absl::StrCat(
                         path_, " is the state of server ", *owner_, ", not of server ", server,
                         "; use that rank, or this server's own data_dir")),
                     {"cistern-server.rank", "cistern-server.data_dir"});
}

absl::Status StateFolder::SetOwner(uint32_t server) {
  const std::string path = absl::StrCat(path_, "/", kOwnerName), fresh = path + ".tmp";
  CISTERN_RETURN_IF_ERROR(RemoveIfThere(files_, fresh));
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file, files_.Create(fresh));
  CISTERN_RETURN_IF_ERROR(file->Append(absl::StrCat(server, "\n")));
  CISTERN_RETURN_IF_ERROR(file->Sync());
  CISTERN_RETURN_IF_ERROR(file->Close());
  CISTERN_RETURN_IF_ERROR(files_.Replace(fresh, path));
  CISTERN_RETURN_IF_ERROR(files_.SyncFolder(path_));
  owner_ = server;
  return absl::OkStatus();
}

absl::StatusOr<std::vector<uint64_t>> StateFolder::Numbers(const std::string& folder) const {
  CISTERN_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                           files_.List(absl::StrCat(path_, "/", folder)));
  std::vector<uint64_t> numbers;
  for (const std::string& name : names) {
    if (const uint64_t number = NumberOfName(name); number > 0) numbers.push_back(number);
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

absl::Status StateFolder::CheckManifests() const {
  CISTERN_ASSIGN_OR_RETURN(const std::vector<std::string> names, files_.List(data_path()));
  ProvenCommit proven;
  for (const std::string& name : names) {
    const std::optional<RowFileName> parsed = ParseRowFileName(name);
    if (parsed.has_value()) proven.Update(CommitProvenBy(*parsed), absl::StrCat("data/", name));
  }
  CISTERN_ASSIGN_OR_RETURN(const std::vector<Term> claims, Numbers("epoch"));
  for (const Term claim : claims) {
    CISTERN_ASSIGN_OR_RETURN(const uint64_t commit, CommitOfClaim(claim));
    proven.Update(commit, absl::StrCat("epoch/", NumberName(claim)));
  }
  // Listed after the files that prove them, so that a commit made in between is not a fault.
  CISTERN_ASSIGN_OR_RETURN(const std::vector<uint64_t> commits, Commits());
  const uint64_t newest = commits.empty() ? 0 : commits.back();
  const uint64_t second = commits.size() < 2 ? newest - 1 : commits[commits.size() - 2];
  if (newest > kMaxCommit || (newest > 0 && second != newest - 1)) {
    return absl::DataLossError(absl::StrCat(
        ManifestPath(newest), " is not the commit after ", commits.size() < 2 ? 0 : second,
        ", the previous one here: if no server wrote this file, move it away; if manifests "
        "between them were lost, restore them from a copy"));
  }
  if (proven.commit <= newest) return absl::OkStatus();
  return WithOptions(absl::DataLossError(absl::StrCat(
                         path_, ": manifest ", proven.commit, " is missing: ", proven.by,
                         " was written after that commit, and the newest manifest here is ", newest,
                         "; restore ", ManifestPath(proven.commit),
                         " from a copy, or use another data_dir (if "
                         "no server wrote ",
                         proven.by, ", move that file away)")),
                     {"cistern-server.data_dir"});
}

absl::StatusOr<Term> StateFolder::NewestWrittenTerm() const {
  Term newest = 0;
  CISTERN_ASSIGN_OR_RETURN(const std::vector<std::string> names, files_.List(data_path()));
  for (const std::string& name : names) {
    const std::optional<RowFileName> parsed = ParseRowFileName(name);
    if (parsed && parsed->term <= kMaxTerm) newest = std::max(newest, parsed->term);
  }
  const absl::StatusOr<std::optional<ParsedManifest>> manifest = NewestManifest();
  // A manifest that cannot be trusted counts for nothing here; its row files count.
  if (absl::IsDataLoss(manifest.status()) || absl::IsNotFound(manifest.status())) return newest;
  CISTERN_RETURN_IF_ERROR(manifest.status());
  if (!manifest->has_value() || (*manifest)->manifest.epoch() > kMaxTerm) return newest;
  return std::max<Term>(newest, (*manifest)->manifest.epoch());
}

absl::StatusOr<Term> StateFolder::NewestTerm() const {
  CISTERN_ASSIGN_OR_RETURN(const std::vector<Term> claims, Numbers("epoch"));
  CISTERN_ASSIGN_OR_RETURN(const Term written, NewestWrittenTerm());
  return std::max(written, claims.empty() ? 0 : claims.back());
}

absl::Status StateFolder::CheckTermsAreLeft(Term newest) const {
  if (newest < kMaxTerm) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      path_, ": no term is left to claim: term ", newest, " was claimed, and ", kMaxTerm,
      " is the last; stop the servers and run: cistern ckpt repair-epochs ", path_));
}

absl::Status StateFolder::CreateTerm(const TermClaim& claim) {
  CISTERN_ASSIGN_OR_RETURN(const Term newest, NewestTerm());
  CISTERN_RETURN_IF_ERROR(CheckTermsAreLeft(newest));
  if (claim.term > kMaxTerm) {
    return absl::FailedPreconditionError(absl::StrCat(
        "term ", claim.term, " cannot be claimed: ", kMaxTerm, " is the last; claim ", newest + 1));
  }
  if (newest >= claim.term) {
    return absl::AlreadyExistsError(
        absl::StrCat("term ", claim.term, " cannot be claimed: ", newest, " was claimed before"));
  }
  return WriteClaim(claim);
}

absl::Status StateFolder::WriteClaim(TermClaim claim) {
  // A claim must not outlive the manifest that it proves.
  CISTERN_RETURN_IF_ERROR(SyncManifests());
  CISTERN_ASSIGN_OR_RETURN(const std::vector<uint64_t> commits, Commits());
  claim.commit = commits.empty() ? 0 : commits.back();
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file,
                           files_.CreatePrivate(TermPath(claim.term)));
  CISTERN_RETURN_IF_ERROR(file->Append(FormatClaim(claim)));
  CISTERN_RETURN_IF_ERROR(file->Sync());
  CISTERN_RETURN_IF_ERROR(file->Close());
  return files_.SyncFolder(path_ + "/epoch");
}

absl::StatusOr<TermClaim> StateFolder::ReadTerm(Term term) const {
  CISTERN_ASSIGN_OR_RETURN(const std::string text,
                           ReadWhole(files_, TermPath(term), kMaxClaimBytes));
  return ParseClaim(term, text);
}

absl::StatusOr<uint64_t> StateFolder::CommitOfClaim(Term term) const {
  const absl::StatusOr<TermClaim> claim = ReadTerm(term);
  // NotFound: removed in the meantime, as older claims are. ResourceExhausted: longer than any
  // claim.
  if (absl::IsNotFound(claim.status()) || absl::IsResourceExhausted(claim.status())) return 0;
  CISTERN_RETURN_IF_ERROR(claim.status());
  return claim->commit;
}

absl::StatusOr<std::vector<Term>> StateFolder::RepairTerms() {
  CISTERN_ASSIGN_OR_RETURN(const std::vector<Term> claims, Numbers("epoch"));
  const auto first_bad = std::lower_bound(claims.begin(), claims.end(), kMaxTerm);
  const std::vector<Term> bad(first_bad, claims.end());
  if (bad.empty()) return bad;
  CISTERN_ASSIGN_OR_RETURN(Term newest, NewestWrittenTerm());
  if (first_bad != claims.begin()) newest = std::max(newest, *(first_bad - 1));
  // The new claim is written before the others are removed, so fencing never starts again.
  CISTERN_RETURN_IF_ERROR(WriteClaim(ParseClaim(newest + 1, "")));
  for (const Term term : bad) CISTERN_RETURN_IF_ERROR(RemoveIfThere(files_, TermPath(term)));
  CISTERN_RETURN_IF_ERROR(files_.SyncFolder(path_ + "/epoch"));
  return bad;
}

std::string StateFolder::TermPath(Term term) const {
  return absl::StrCat(path_, "/epoch/", NumberName(term));
}

std::string StateFolder::ManifestPath(uint64_t commit) const {
  return absl::StrCat(path_, "/manifest/", NumberName(commit));
}

absl::StatusOr<std::vector<uint64_t>> StateFolder::Commits() const {
  return Numbers("manifest");
}

absl::StatusOr<bool> StateFolder::HasManifest(uint64_t commit) const {
  return files_.Exists(ManifestPath(commit));
}

absl::StatusOr<ParsedManifest> StateFolder::ReadManifest(uint64_t commit) const {
  const std::string path = ManifestPath(commit);
  if (commit > kMaxCommit) {
    return absl::DataLossError(
        absl::StrCat(path, ": the number is above that of any commit; move the file away"));
  }
  absl::StatusOr<ParsedManifest> parsed = ReadManifestFile(files_, path);
  if (!parsed.ok()) return parsed;
  if (parsed->manifest.commit() != commit) {
    return absl::DataLossError(absl::StrCat(path, ": it is the manifest of commit ",
                                            parsed->manifest.commit(),
                                            ", not of the commit in its name"));
  }
  return parsed;
}

absl::StatusOr<std::optional<ParsedManifest>> StateFolder::NewestManifest() const {
  CISTERN_ASSIGN_OR_RETURN(const std::vector<uint64_t> commits, Commits());
  if (commits.empty()) return std::nullopt;
  CISTERN_ASSIGN_OR_RETURN(ParsedManifest newest, ReadManifest(commits.back()));
  return newest;
}

absl::StatusOr<uint64_t> StateFolder::WriteManifest(const v1::Manifest& manifest,
                                                    std::optional<uint64_t> expected) {
  ExpectMemoryForJson(manifest.ByteSizeLong() * 8);
  const std::string text = FormatManifest(manifest);
  CISTERN_ASSIGN_OR_RETURN(const ParsedManifest parsed, ParseManifest(text));
  const std::string path = ManifestPath(manifest.commit());
  if (expected.has_value() && parsed.self_xxh3 != *expected) {
    return absl::InvalidArgumentError(absl::StrCat("the manifest of commit ", manifest.commit(),
                                                   " does not have the hash that came with it"));
  }
  const std::string fresh = absl::StrCat(path, ".epoch-", manifest.epoch());
  // An interrupted attempt of this term may have left a file, which is of no use.
  CISTERN_RETURN_IF_ERROR(RemoveIfThere(files_, fresh));
  const absl::Status written = [&]() -> absl::Status {
    CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file, files_.Create(fresh));
    CISTERN_RETURN_IF_ERROR(file->Append(text));
    CISTERN_RETURN_IF_ERROR(file->Sync());
    CISTERN_RETURN_IF_ERROR(file->Close());
    return files_.Publish(fresh, path);
  }();
  if (!written.ok()) {
    RemoveIfThere(files_, fresh).IgnoreError();  // the first error is the one to report
    return written;
  }
  CISTERN_RETURN_IF_ERROR(files_.SyncFolder(path_ + "/manifest"));
  return parsed.self_xxh3;
}

absl::StatusOr<uint32_t> StateFolder::NewestAttempt(uint32_t server) const {
  CISTERN_ASSIGN_OR_RETURN(const std::vector<std::string> names, files_.List(data_path()));
  uint32_t newest = 0;
  for (const std::string& name : names) {
    const std::optional<RowFileName> parsed = ParseRowFileName(name);
    if (parsed && parsed->server == server) newest = std::max(newest, parsed->attempt);
  }
  return newest;
}

absl::Status StateFolder::RemoveOld(uint64_t newest_commit, uint64_t keep) {
  const std::string folder = path_ + "/manifest";
  CISTERN_ASSIGN_OR_RETURN(const std::vector<std::string> names, files_.List(folder));
  bool removed = false;
  for (const std::string& name : names) {
    // Temporary names are "<digits>.epoch-<term>".
    const uint64_t commit = NumberOfName(name.substr(0, name.find('.')));
    const bool temporary = absl::StrContains(name, ".");
    const bool old = commit <= newest_commit && (temporary || newest_commit - commit >= keep);
    if (commit == 0 || !old) continue;
    // Syncs between removals, so that after a power loss the remaining manifests are still
    // consecutive.
    if (removed) CISTERN_RETURN_IF_ERROR(SyncManifests());
    CISTERN_RETURN_IF_ERROR(RemoveIfThere(files_, absl::StrCat(folder, "/", name)));
    removed = !temporary;
  }
  CISTERN_ASSIGN_OR_RETURN(std::vector<uint64_t> terms, Numbers("epoch"));
  if (!terms.empty()) terms.pop_back();
  for (const uint64_t term : terms) {
    CISTERN_RETURN_IF_ERROR(RemoveIfThere(files_, TermPath(term)));
  }
  return absl::OkStatus();
}

absl::Status StateFolder::RemoveUnnamed(uint64_t newest_commit, const std::set<std::string>& named,
                                        const std::function<bool(uint32_t server)>& removes) {
  CISTERN_ASSIGN_OR_RETURN(const std::vector<std::string> names, files_.List(data_path()));
  for (const std::string& name : names) {
    const std::optional<RowFileName> parsed = ParseRowFileName(name);
    if (!parsed || named.count(name) != 0 || parsed->commit > newest_commit) continue;
    if (!removes(parsed->server)) continue;
    CISTERN_RETURN_IF_ERROR(RemoveIfThere(files_, absl::StrCat(data_path(), "/", name)));
  }
  return absl::OkStatus();
}

}  // namespace cistern::server
