#include "cli/command/version_flags.h"

namespace cistern::cli {

void AddVersionFlags(Command& command, app::VersionOptions* options, std::string* precision) {
  command.Flag("--out", &options->out,
               {"DIR", "The serving folder; its HEAD names the new version when that is complete.",
                "--out serving", kRequired});
  command.Choice("--precision", precision,
                 {"float32|float16|bfloat16|int8",
                  "How rows are stored; int8: row-wise, with a float16 scale and offset.",
                  "--precision int8"});
  command.Flag("--keep", &options->keep,
               {"INT", "The number of versions to keep, at least 1.", "--keep 5"});
  command.Flag("--recipe", &options->recipe,
               {"FILE|DIR",
                "The recipe that encodes rows of text for this model; by default that of its run "
                "folder.",
                "--recipe data/train"});
  command.Flag(
      "--name", &options->name,
      {"NAME",
       "The name by which clients ask for the model; by default that of the version before, "
       "and in a new folder that of the run or of the model file.",
       "--name ctr"});
}

std::string NameNote(const ServingWritten& written, const std::string& root) {
  const std::string& name = written.version.name;
  if (!written.name_before.empty() && name != written.name_before) {
    return absl::StrCat("the model is called '", name, "' from this version on, not '",
                        written.name_before, "' as before: requests that ask for '",
                        written.name_before,
                        "' are refused, unless cistern serve runs with --name");
  }
  if (name == written.own_name || written.name_before.empty()) return "";
  return absl::StrCat("the model is still called '", name, "', as in the version before in ", root,
                      "; to call it '", written.own_name, "', add --name ", written.own_name);
}

}  // namespace cistern::cli
