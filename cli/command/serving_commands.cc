#include "cli/command/commands.h"

#include <memory>

#include "absl/strings/match.h"
#include "app/export/serving_folder.h"
#include "app/state/saved_place.h"
#include "cli/terminal/aligned_text.h"
#include "common/base/amount_text.h"

namespace cistern::cli {
namespace {

absl::StatusOr<Report> RunList(const std::string& root) {
  CISTERN_ASSIGN_OR_RETURN(const app::ServingListing folder, app::ListServing(root));
  std::vector<std::vector<std::string>> rows = {{"VERSION", "NAME", "COMMIT", "PASS", "CREATED",
                                                 "PRECISION", "ROWS", "LAYERS", "BYTES", "DIGEST"}};
  for (const ServingVersion& version : folder.versions) {
    const app::ServingSize size = app::SizeOf(version);
    const bool current = version.folder == folder.head.folder;
    rows.push_back({version.folder + (current ? " *" : ""), version.name,
                    absl::StrCat(version.commit), absl::StrCat(version.pass), version.created,
                    NameOf(version.precision), absl::StrCat(size.rows), absl::StrCat(size.layers),
                    BytesText(size.bytes), app::DigestText(size.digest)});
  }
  Report report{app::JsonOf(folder), AlignedText(rows) + "* is served\n", absl::OkStatus()};
  if (folder.head.folder.empty()) {
    absl::StrAppend(&report.text, "HEAD is missing or does not name a version; name one: ",
                    "cistern serving rollback ", root, " --to VERSION\n");
  }
  for (const std::string& name : folder.damaged) {
    absl::StrAppend(&report.text, name, " is damaged: its serving.json cannot be read\n");
  }
  return report;
}

// What to type, by the options of an error.
absl::Status WithServingFix(const absl::Status& status, const std::string& root) {
  const std::vector<std::string> options = OptionsOf(status);
  if (options.empty()) return status;
  const std::string rollback = absl::StrCat("cistern serving rollback ", root, " --to ");
  const absl::Status plain = WithOptions(status, {});
  if (options[0] == "publish.once") {
    return WithFix(plain,
                   "publish the newest commit again (cistern publish --once), or switch to another "
                   "version (cistern serving rollback)");
  }
  if (options[0] == "to") {
    return WithFix(plain,
                   absl::StrCat("name another version: ", rollback, "VERSION (cistern serving ls ",
                                root, "), or export one again"));
  }
  if (!absl::StartsWith(options[0], "to=")) return status;
  return WithFix(plain, absl::StrCat("name the version to serve: ", rollback, options[0].substr(3),
                                     " (", FixOf(status), ")"));
}

absl::StatusOr<Report> RunVerify(const std::string& root) {
  const absl::StatusOr<app::ServingListing> folder = app::VerifyServing(root);
  if (!folder.ok()) return WithServingFix(folder.status(), root);
  const ServingVersion* const served = folder->served();
  Report report;
  report.json["version"] = folder->head.folder;
  report.json["commit"] = served == nullptr ? 0 : served->commit;
  report.json["versions"] = folder->versions.size();
  report.text = absl::StrCat(
      "version ", folder->head.folder, " is served; every byte of all ", folder->versions.size(),
      " versions matches its hash, and the served tables match their digests\n");
  return report;
}

struct RollbackFlags {
  std::string root, to;
};

absl::StatusOr<Report> RunRollback(const RollbackFlags& flags) {
  const absl::StatusOr<app::ServingRollback> done = app::RollBackServing(flags.root, flags.to);
  if (!done.ok()) return WithServingFix(done.status(), flags.root);
  const ServingVersion& version = done->version;
  Report report;
  report.json["version"] = version.folder;
  report.json["commit"] = version.commit;
  report.json["name"] = version.name;
  report.text = absl::StrCat(flags.root, " serves version ", version.folder, " instead of ",
                             done->from.empty() ? "none" : done->from, "\n");
  const std::string& before = done->from_name;
  if (!before.empty() && before != version.name) {
    absl::StrAppend(&report.text, "the model is called '", version.name, "' again, not '", before,
                    "': requests that ask for '", before, "' are refused\n");
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

}  // namespace cistern::cli
