#include "cli/command/serving_commands.h"

#include <algorithm>
#include <memory>
#include <set>

#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "app/state/saved_place.h"
#include "cli/terminal/aligned_text.h"
#include "cli/terminal/exit_code.h"
#include "cli/terminal/progress.h"
#include "common/serving/serving_version.h"
#include "serve/predictor/open_predictor.h"

namespace cistern {
namespace {

struct Folder {
  ServingHead head;                      // without a name if HEAD is corrupt or missing
  std::vector<ServingVersion> versions;  // sorted by name
  std::vector<std::string> damaged;      // names of those whose description is corrupt
};

absl::StatusOr<Folder> ReadFolder(const std::string& root) {
  LocalFileSystem files;
  Folder folder;
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

uint64_t BytesOf(const ServingVersion& version) {
  uint64_t bytes = version.model.bytes + version.dense.bytes;
  for (const ServingTable& table : version.tables) {
    for (const ServingFile& layer : table.layers) bytes += layer.bytes;
  }
  return bytes;
}

absl::StatusOr<Report> RunList(const std::string& root) {
  CISTERN_ASSIGN_OR_RETURN(const Folder folder, ReadFolder(root));
  Report report;
  report.json["current"] = folder.head.folder;
  report.json["versions"] = nlohmann::ordered_json::array();
  std::vector<std::vector<std::string>> rows = {{"VERSION", "NAME", "COMMIT", "PASS", "CREATED",
                                                 "PRECISION", "ROWS", "LAYERS", "BYTES", "DIGEST"}};
  for (const ServingVersion& version : folder.versions) {
    uint64_t row_num = 0, digest = 0;
    size_t layers = 0;
    for (const ServingTable& table : version.tables) {
      row_num += table.rows;
      digest += table.digest;
      layers = std::max(layers, table.layers.size());
    }
    const bool current = version.folder == folder.head.folder;
    rows.push_back({version.folder + (current ? " *" : ""), version.name,
                    absl::StrCat(version.commit), absl::StrCat(version.pass), version.created,
                    NameOf(version.precision), absl::StrCat(row_num), absl::StrCat(layers),
                    BytesText(BytesOf(version)), app::DigestText(digest)});
    report.json["versions"].push_back({{"version", version.folder},
                                       {"name", version.name},
                                       {"commit", version.commit},
                                       {"pass", version.pass},
                                       {"created", version.created},
                                       {"precision", NameOf(version.precision)},
                                       {"rows", row_num},
                                       {"layers", layers},
                                       {"bytes", BytesOf(version)},
                                       {"digest", app::DigestText(digest)}});
  }
  report.json["damaged"] = folder.damaged;
  report.text = AlignedText(rows) + "* is served\n";
  if (folder.head.folder.empty()) {
    absl::StrAppend(&report.text, "HEAD is missing or does not name a version; name one: ",
                    "cistern serving rollback ", root, " --to VERSION\n");
  }
  for (const std::string& name : folder.damaged) {
    absl::StrAppend(&report.text, name, " is damaged: its serving.json cannot be read\n");
  }
  return report;
}

constexpr char kPublishAgain[] =
    "publish the newest commit again (cistern publish --once), or switch to another version "
    "(cistern serving rollback)";

// A version that cannot be used, with the fix for one that is damaged. A file that may not be read,
// or a disk that fails, says nothing of the version.
absl::Status Unusable(const absl::Status& status, absl::string_view context,
                      const std::string& fix) {
  const absl::Status explained = AddContext(status, context);
  if (!absl::IsDataLoss(status) && !absl::IsNotFound(status)) return explained;
  return WithFix(WithKind(explained, ErrorKind::kBadCheckpoint), fix);
}

// What is served: as a server would open it, and byte by byte.
absl::Status VerifyServed(const std::string& root, const Folder& folder,
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
      OpenPredictor(root, {.threads = 1, .poll_ms = 0, .verify = true}).status();
  if (!absl::IsNotFound(opened)) return opened;
  // HEAD names a version whose files are gone.
  return absl::DataLossError(absl::StrCat("the served version is missing: ", opened.message()));
}

// The versions that a rollback could switch to.
absl::Status VerifyOthers(const std::string& root, const Folder& folder,
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

absl::StatusOr<Report> RunVerify(const std::string& root) {
  CISTERN_ASSIGN_OR_RETURN(const Folder folder, ReadFolder(root));
  std::set<std::string> checked;
  const absl::Status served = VerifyServed(root, folder, &checked);
  if (!served.ok()) return Unusable(served, root, kPublishAgain);
  const absl::Status others = VerifyOthers(root, folder, &checked);
  if (!others.ok()) {
    return Unusable(others,
                    absl::StrCat(root, ": the served version ", folder.head.folder,
                                 " is intact, but another one ",
                                 absl::IsDataLoss(others) ? "is damaged" : "cannot be read"),
                    "do not roll back to it; later exports and commits of publish remove it");
  }
  uint64_t commit = 0;
  for (const ServingVersion& version : folder.versions) {
    if (version.folder == folder.head.folder) commit = version.commit;
  }
  Report report;
  report.json["version"] = folder.head.folder;
  report.json["commit"] = commit;
  report.json["versions"] = folder.versions.size();
  report.text = absl::StrCat(
      "version ", folder.head.folder, " is served; every byte of all ", folder.versions.size(),
      " versions matches its hash, and the served tables match their digests\n");
  return report;
}

struct RollbackFlags {
  std::string root, to;
};

// The version named by its folder or its commit; by default the one before the current one.
absl::StatusOr<ServingVersion> FindVersion(const Folder& folder, const RollbackFlags& flags) {
  std::vector<std::string> names;
  const ServingVersion* found = nullptr;
  for (const ServingVersion& version : folder.versions) {
    names.push_back(version.folder);
    const bool named = version.folder == flags.to || absl::StrCat(version.number()) == flags.to;
    const bool before = flags.to.empty() && version.folder < folder.head.folder;
    if (named || before) found = &version;
  }
  if (found != nullptr) return *found;
  if (names.empty()) {
    return WithFix(
        WithKind(absl::DataLossError(absl::StrCat(flags.root, " has no version that can be read")),
                 ErrorKind::kBadCheckpoint),
        "export or publish one again (cistern export serving, cistern publish)");
  }
  const std::string existing = absl::StrCat("existing versions: ", absl::StrJoin(names, ", "));
  if (flags.to.empty() && folder.head.folder.empty()) {
    return WithFix(absl::InvalidArgumentError(absl::StrCat(
                       flags.root, "/HEAD is missing or damaged, so no version is the one before")),
                   absl::StrCat("name the version to serve: cistern serving rollback ", flags.root,
                                " --to ", names.back(), " (", existing, ")"));
  }
  return WithFix(
      absl::InvalidArgumentError(
          flags.to.empty() ? absl::StrCat(flags.root, " has no version before ", folder.head.folder)
                           : absl::StrCat(flags.root, " has no version or commit ", flags.to)),
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

absl::StatusOr<Report> RunRollback(const RollbackFlags& flags) {
  LocalFileSystem files;
  CISTERN_RETURN_IF_ERROR(ReadFolder(flags.root).status());  // no lock file where none belongs
  CISTERN_ASSIGN_OR_RETURN(const auto lock, LockFolder(files, flags.root));
  CISTERN_ASSIGN_OR_RETURN(const Folder folder, ReadFolder(flags.root));
  CISTERN_ASSIGN_OR_RETURN(const ServingVersion version, FindVersion(folder, flags));
  const absl::Status whole = CheckSmallFiles(files, flags.root, version);
  if (!whole.ok()) {
    return Unusable(
        whole, absl::StrCat("version ", version.folder, " cannot be served"),
        absl::StrCat("name another version: cistern serving rollback ", flags.root,
                     " --to VERSION (cistern serving ls ", flags.root, "), or export one again"));
  }
  CISTERN_ASSIGN_OR_RETURN(const ServingHead head, HeadOf(files, flags.root, version.folder));
  CISTERN_RETURN_IF_ERROR(WriteHead(files, flags.root, head));
  Report report;
  report.json["version"] = version.folder;
  report.json["commit"] = version.commit;
  report.json["name"] = version.name;
  report.text = absl::StrCat(flags.root, " serves version ", version.folder, " instead of ",
                             folder.head.folder.empty() ? "none" : folder.head.folder, "\n");
  for (const ServingVersion& before : folder.versions) {
    if (before.folder != folder.head.folder || before.name == version.name) continue;
    absl::StrAppend(&report.text, "the model is called '", version.name, "' again, not '",
                    before.name, "': requests that ask for '", before.name, "' are refused\n");
  }
  return report;
}

}  // namespace

void AddServingCommands(Command& root) {
  Command& all = root.Add("serving", "Lists, checks and switches the versions of a serving folder.",
                          "cistern serving ls serving");
  auto listed = std::make_shared<std::string>();
  Command& list = all.Add("ls", "Lists the versions; * marks the one that is served.",
                          "cistern serving ls serving");
  list.Argument("DIR", listed.get(), {"DIR", "The serving folder.", "serving", kRequired});
  list.Does([listed](Console&) { return RunList(*listed); });

  auto verified = std::make_shared<std::string>();
  Command& verify = all.Add("verify", "Reads and checks every byte of all versions.",
                            "cistern serving verify serving");
  verify.Argument("DIR", verified.get(), {"DIR", "The serving folder.", "serving", kRequired});
  verify.Does([verified](Console&) { return RunVerify(*verified); });

  auto flags = std::make_shared<RollbackFlags>();
  Command& rollback =
      all.Add("rollback", "Serves an older version; a running cistern serve switches to it.",
              "cistern serving rollback serving --to 41");
  rollback.Argument("DIR", &flags->root, {"DIR", "The serving folder.", "serving", kRequired});
  rollback.Flag("--to", &flags->to,
                {"VERSION", "A version or a commit; by default the version before the current one.",
                 "--to 41"});
  rollback.Does([flags](Console&) { return RunRollback(*flags); });
}

}  // namespace cistern
