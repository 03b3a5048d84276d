#include "app/export/export_dnn_plugin.h"

#include <memory>

#include "cli/command/export_commands.h"
#include "cli/command/job_console.h"
#include "cli/command/shared_flags.h"
#include "common/base/amount_text.h"

namespace cistern::cli {
namespace {

std::string TextOf(const app::DnnPluginExported& exported) {
  const auto& written = exported.written;
  return absl::StrCat(exported.folder, "\nexported ", written.files, " parameters, ",
                      written.numbers, " numbers, ", BytesText(written.bytes), " in ",
                      DurationText(exported.seconds), "\n");
}

}  // namespace

void AddExportDnnPlugin(Command& all) {
  auto options = std::make_shared<app::DnnPluginExport>();
  Command& command =
      all.Add("dnn-plugin", "Writes the dense parameters as Paddle's tensor files.",
              "cistern export dnn-plugin deepfm.json --model runs/deepfm --out dnn_plugin");
  AddExportFlags(command, &options->source);
  command.Flag("--out", &options->out,
               {"DIR", "Folder of the files; an earlier export there is replaced.",
                "--out dnn_plugin", kRequired});
  command.Does([options](Console& console) -> absl::StatusOr<Report> {
    CISTERN_ASSIGN_OR_RETURN(const app::DnnPluginExported exported,
                             app::ExportDnnPlugin(*options, JobConsole(console).calls()));
    return Report{app::JsonOf(exported), TextOf(exported), absl::OkStatus()};
  });
}

}  // namespace cistern::cli
