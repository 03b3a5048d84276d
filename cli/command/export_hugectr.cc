#include "app/export/export_hugectr.h"

#include <memory>

#include "cli/command/export_commands.h"
#include "cli/command/job_console.h"
#include "cli/command/shared_flags.h"
#include "common/base/amount_text.h"

namespace cistern::cli {
namespace {

struct HugectrFlags {
  app::HugectrExport options;
  std::string form = "v2";
};

std::string TextOf(const app::HugectrExported& exported) {
  std::string text;
  for (const std::string& path : exported.written.paths) absl::StrAppend(&text, path, "\n");
  absl::StrAppend(&text, "exported ", exported.written.rows, " rows, ",
                  BytesText(exported.written.bytes), " in ", DurationText(exported.seconds), "\n");
  return text;
}

}  // namespace

void AddExportHugectr(Command& all) {
  auto flags = std::make_shared<HugectrFlags>();
  Command& command =
      all.Add("hugectr", "Writes HugeCTR's dense and sparse model files: PREFIX_dense_0.model ...",
              "cistern export hugectr deepfm.json --model runs/deepfm --out deepfm --form v3");
  AddExportFlags(command, &flags->options.source);
  command.Flag("--out", &flags->options.out,
               {"PREFIX", "Prefix of the file names; existing files are replaced.",
                "--out exported/deepfm", kRequired});
  command.Choice(
      "--form", &flags->form,
      {"v2|v3",
       "v2: one file per embedding, as in HugeCTR 2.3; v3: one folder per embedding, as in 3.x, "
       "with the optimizer state.",
       "--form v3"});
  command.Flag("--iteration", &flags->options.iteration,
               {"INT", "The number in the file names.", "--iteration 1000"});
  command.Does([flags](Console& console) -> absl::StatusOr<Report> {
    if (flags->form == "v3") flags->options.form = HugectrForm::kV3;
    CISTERN_ASSIGN_OR_RETURN(const app::HugectrExported exported,
                             app::ExportHugectr(flags->options, JobConsole(console).calls()));
    return Report{app::JsonOf(exported), TextOf(exported), absl::OkStatus()};
  });
}

}  // namespace cistern::cli
