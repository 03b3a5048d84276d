#include "app/export/serving_folder.h"

#include <algorithm>
#include <memory>
#include <set>

#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "app/state/saved_place.h"
#include "serve/predictor/open_predictor.h"

namespace cistern::app {
namespace {

bool IsDamage(const absl::Status& status) {
  return absl::IsDataLoss(status) || absl::IsNotFound(status);
}

// A version that cannot be used, with the fix for one that is damaged. A file that may not be read,
// or a disk that fails, says nothing of the version.
absl::Status Unusable(const absl::Status& status, absl::string_view context,
                      const std::string& fix) {
  const absl::Status explained = AddContext(status, context);
  if (!IsDamage(status)) return explained;
  return WithFix(WithKind(explained, ErrorKind::kBadCheckpoint), fix);
}

// What is served: as a server would open it, and byte by byte.
absl::Status VerifyServed(const std::string& root, const ServingListing& folder,
                          std::set<std::string>* checked) {
  LocalFileSystem files;
  const absl::Status head = CheckHeadBytes(files, root);
  if (absl::IsNotFound(head)) return WithCode(head, absl::StatusCode::kDataLoss);
  CISTERN_RETURN_IF_ERROR(head);
  for (const ServingVersion& version : folder.versions) {
    if (version.folder != folder.head.folder) continue;
    CISTERN_RETURN_IF_ERROR(CheckAllFiles(files, root, version, checked));
  }
  const absl::Status opened =
      serve::OpenPredictor(root, {.threads = 1, .poll_ms = 0, .verify = true}).status();
  if (!absl::IsNotFound(opened)) return opened;
  // HEAD names a version whose files are gone.
  return absl::DataLossError(absl::StrCat("the served version is missing: ", opened.message()));
}

// The versions that a rollback could switch to.
absl::Status VerifyOthers(const std::string& root, const ServingListing& folder,
                          std::set<std::string>* checked) {
  LocalFileSystem files;
  if (!folder.damaged.empty()) {
    return absl::DataLossError(
        absl::StrCat("version ", folder.damaged.front(), ": its serving.json is corrupt"));
  }
  for (const ServingVersion& version : folder.versions) {
    const absl::Status whole = CheckAllFiles(files, root, version, checked);
    if (whole.ok()) continue;
    // A publisher may have removed it meanwhile.
    CISTERN_ASSIGN_OR_RETURN(const std::vector<std::string> now, VersionsIn(files, root));
    if (std::find(now.begin(), now.end(), version.folder) == now.end()) continue;
    return AddContext(whole, absl::StrCat("version ", version.folder));
  }
  return absl::OkStatus();
}

// The version named by its folder or its commit; by default the one before the current one.
absl::StatusOr<ServingVersion> FindVersion(const ServingListing& folder, const std::string& root,
                                           const std::string& to) {
  std::vector<std::string> names;
  const ServingVersion* found = nullptr;
  for (const ServingVersion& version : folder.versions) {
    names.push_back(version.folder);
    const bool named = version.folder == to || absl::StrCat(version.number()) == to;
    const bool before = to.empty() && version.folder < folder.head.folder;
    if (named || before) found = &version;
  }
  if (found != nullptr) return *found;
  if (names.empty()) {
    return WithFix(
        WithKind(absl::DataLossError(absl::StrCat(root, " has no version that can be read")),
                 ErrorKind::kBadCheckpoint),
        "export or publish one again (cistern export serving, cistern publish)");
  }
  const std::string existing = absl::StrCat("existing versions: ", absl::StrJoin(names, ", "));
  if (to.empty() && folder.head.folder.empty()) {
    return WithFix(
        WithOptions(absl::InvalidArgumentError(absl::StrCat(
                        root, "/HEAD is missing or damaged, so no version is the one before")),
                    {absl::StrCat("to=", names.back())}),
        existing);
  }
  return WithFix(absl::InvalidArgumentError(
                     to.empty() ? absl::StrCat(root, " has no version before ", folder.head.folder)
                                : absl::StrCat(root, " has no version or commit ", to)),
                 existing);
}

// No publisher removes versions meanwhile. One holds the lock for as long as it writes a version.
absl::StatusOr<std::unique_ptr<FileLock>> LockFolder(FileSystem& files, const std::string& root) {
  constexpr absl::Duration kPatience = absl::Seconds(30), kPause = absl::Milliseconds(5);
  const absl::Time end = absl::Now() + kPatience;
  for (;;) {
    auto lock = files.Lock(absl::StrCat(root, "/LOCK"));
    if (!absl::IsFailedPrecondition(lock.status()) || absl::Now() > end) return lock;
    absl::SleepFor(kPause);
  }
}

}  // namespace

const ServingVersion* ServingListing::served() const {
  for (const ServingVersion& version : versions) {
    if (version.folder == head.folder) return &version;
  }
  return nullptr;
}

absl::StatusOr<ServingListing> ListServing(const std::string& root) {
  LocalFileSystem files;
  ServingListing folder;
  const absl::StatusOr<ServingHead> head = ReadHead(files, root);
  const absl::StatusOr<std::vector<std::string>> listed = VersionsIn(files, root);
  // A folder that has lost its HEAD still holds versions.
  if (absl::IsNotFound(head.status()) && (!listed.ok() || listed->empty())) {
    return WithFix(absl::InvalidArgumentError(absl::StrCat(root, " is not a serving folder")),
                   "name a folder that cistern export serving or cistern publish writes");
  }
  if (head.ok()) folder.head = *head;
  if (!head.ok() && !absl::IsDataLoss(head.status()) && !absl::IsNotFound(head.status())) {
    return head.status();
  }
  CISTERN_ASSIGN_OR_RETURN(const std::vector<std::string> names, listed);
  for (const std::string& name : names) {
    const absl::StatusOr<ServingVersion> version = ReadVersion(files, root, name, 0);
    if (absl::IsDataLoss(version.status())) {
      folder.damaged.push_back(name);
      continue;
    }
    CISTERN_RETURN_IF_ERROR(version.status());
    folder.versions.push_back(*version);
  }
  return folder;
}

ServingSize SizeOf(const ServingVersion& version) {
  ServingSize size;
  size.bytes = version.model.bytes + version.dense.bytes;
  for (const ServingTable& table : version.tables) {
    size.rows += table.rows;
    size.digest += table.digest;
    size.layers = std::max(size.layers, table.layers.size());
    for (const ServingFile& layer : table.layers) size.bytes += layer.bytes;
  }
  return size;
}

nlohmann::ordered_json JsonOf(const ServingListing& listing) {
  nlohmann::ordered_json json;
  json["current"] = listing.head.folder;
  json["versions"] = nlohmann::ordered_json::array();
  for (const ServingVersion& version : listing.versions) {
    const ServingSize size = SizeOf(version);
    json["versions"].push_back({{"version", version.folder},
                                {"name", version.name},
                                {"commit", version.commit},
                                {"pass", version.pass},
                                {"created", version.created},
                                {"precision", NameOf(version.precision)},
                                {"rows", size.rows},
                                {"layers", size.layers},
                                {"bytes", size.bytes},
                                {"digest", DigestText(size.digest)}});
  }
  json["damaged"] = listing.damaged;
  return json;
}

absl::StatusOr<ServingListing> VerifyServing(const std::string& root) {
  CISTERN_ASSIGN_OR_RETURN(ServingListing folder, ListServing(root));
  std::set<std::string> checked;
  const absl::Status served = VerifyServed(root, folder, &checked);
  if (!served.ok()) {
    const absl::Status unusable =
        Unusable(served, root, "publish the newest commit again, or switch to another version");
    return IsDamage(served) ? WithOptions(unusable, {"publish.once", "serving.rollback.to"})
                            : unusable;
  }
  const absl::Status others = VerifyOthers(root, folder, &checked);
  if (others.ok()) return folder;
  return Unusable(others,
                  absl::StrCat(root, ": the served version ", folder.head.folder,
                               " is intact, but another one ",
                               absl::IsDataLoss(others) ? "is damaged" : "cannot be read"),
                  "do not roll back to it; later exports and commits of publish remove it");
}

absl::StatusOr<ServingRollback> RollBackServing(const std::string& root, const std::string& to) {
  LocalFileSystem files;
  CISTERN_RETURN_IF_ERROR(ListServing(root).status());  // no lock file where none belongs
  CISTERN_ASSIGN_OR_RETURN(const auto lock, LockFolder(files, root));
  CISTERN_ASSIGN_OR_RETURN(const ServingListing folder, ListServing(root));
  CISTERN_ASSIGN_OR_RETURN(const ServingVersion version, FindVersion(folder, root, to));
  const absl::Status whole = CheckSmallFiles(files, root, version);
  if (!whole.ok()) {
    const absl::Status unusable =
        Unusable(whole, absl::StrCat("version ", version.folder, " cannot be served"),
                 "name another version, or export one again");
    return IsDamage(whole) ? WithOptions(unusable, {"to"}) : unusable;
  }
  CISTERN_ASSIGN_OR_RETURN(const ServingHead head, HeadOf(files, root, version.folder));
  CISTERN_RETURN_IF_ERROR(WriteHead(files, root, head));
  const ServingVersion* const before = folder.served();
  return ServingRollback{version, folder.head.folder, before == nullptr ? "" : before->name};
}

}  // namespace cistern::app
