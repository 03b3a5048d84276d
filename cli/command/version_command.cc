#include "cli/command/commands.h"

#include "absl/strings/str_split.h"
#include "app/diagnose/build_facts.h"

namespace cistern::cli {
namespace {

Report VersionReport() {
  const app::BuildFacts facts = app::ReadBuildFacts();
  Report report;
  report.json = app::JsonOf(facts);
  report.text = absl::StrCat(
      "cistern   ", facts.version, "\n", "compiler  ", facts.compiler, "\n", "cuda      ",
      facts.cuda, "\n", "parquet   ",
      facts.parquet.empty() ? "none: run scripts/install_deps.sh, then rebuild" : facts.parquet,
      "\n", "cores     ", facts.cores, "\n");
  for (absl::string_view line : absl::StrSplit(facts.gpu_text, '\n', absl::SkipEmpty())) {
    absl::StrAppend(&report.text, "gpu       ", line, "\n");
  }
  return report;
}

}  // namespace

void AddVersionCommand(Command& root) {
  root.Add("version", "Prints the version, the build, and the GPUs of this machine.",
           "cistern version")
      .Does([](Console&) -> absl::StatusOr<Report> { return VersionReport(); });
}

}  // namespace cistern::cli
