// cistern ckpt ls: lists the commits and saved models of a data_dir.
#include <memory>

#include "absl/strings/str_join.h"
#include "app/state/state_listing.h"
#include "cli/command/ckpt_commands.h"
#include "cli/terminal/aligned_text.h"
#include "common/base/amount_text.h"

namespace cistern::cli {
namespace {

using Rows = std::vector<std::vector<std::string>>;

std::string WholeText(const absl::Status& whole) {
  return whole.ok() ? "yes" : "no";
}

std::vector<std::string> RowOf(const app::ListedCommit& listed) {
  if (!listed.manifest) {
    return {absl::StrCat(listed.commit), "-", "-", "-", "-", "-", "-", "no", ""};
  }
  const v1::Manifest& manifest = *listed.manifest;
  std::vector<std::string> rows;
  for (const auto* tables : {&manifest.tables(), &manifest.dense_tables()}) {
    for (const v1::TableState& table : *tables) {
      rows.push_back(absl::StrCat(table.name(), "=", table.rows()));
    }
  }
  return {absl::StrCat(listed.commit),
          absl::StrCat(manifest.pass()),
          absl::StrCat(manifest.epoch()),
          manifest.created(),
          absl::StrCat(manifest.server_num()),
          absl::StrCat(manifest.files_size()),
          BytesText(listed.bytes()),
          listed.server && listed.whole.ok() ? absl::StrCat("server ", *listed.server)
                                             : WholeText(listed.whole),
          absl::StrJoin(rows, " ")};
}

std::vector<std::string> RowOf(const app::ListedModel& listed) {
  if (listed.parts.empty()) return {listed.name, "-", "-", "-", "-", "no", ""};
  const ModelPart& part = listed.parts.front();
  return {listed.name,
          absl::StrCat(part.pass),
          absl::StrCat(part.server_num),
          absl::StrCat(listed.files),
          BytesText(listed.bytes),
          WholeText(listed.whole),
          absl::StrCat(listed.rows)};
}

std::string TextOf(const app::StateListing& listing) {
  Rows commits = {
      {"COMMIT", "PASS", "EPOCH", "CREATED", "SERVERS", "FILES", "BYTES", "WHOLE", "ROWS"}};
  Rows models = {{"MODEL", "PASS", "SERVERS", "FILES", "BYTES", "WHOLE", "ROWS"}};
  for (const app::ListedCommit& commit : listing.commits) commits.push_back(RowOf(commit));
  for (const app::ListedModel& model : listing.models) models.push_back(RowOf(model));
  std::string text;
  if (commits.size() > 1) text = AlignedText(commits);
  if (models.size() > 1) absl::StrAppend(&text, text.empty() ? "" : "\n", AlignedText(models));
  return text.empty() ? "no commits, no saved models\n" : text;
}

absl::StatusOr<Report> ListCheckpoints(const std::string& path) {
  const absl::StatusOr<app::StateListing> listing = app::ListState(path);
  if (!listing.ok()) return listing.status();
  return Report{app::JsonOf(*listing), TextOf(*listing), listing->outcome()};
}

}  // namespace

void AddCkptListCommand(Command& ckpt) {
  auto path = std::make_shared<std::string>();
  Command& command =
      ckpt.Add("ls", "Lists the commits and saved models of a data_dir, and whether each is whole.",
               "cistern ckpt ls saved");
  command.Argument(
      "PATH", path.get(),
      {"DIR", "A data_dir of servers, or the state folder in it.", "saved", kRequired});
  command.Footer(
      "Whole: the manifest can be read, and every file that it names exists with its size.\n"
      "cistern verify also checks the contents. Exit code 5 if anything is not whole.");
  command.Does([path](Console&) { return ListCheckpoints(*path); });
}

}  // namespace cistern::cli
