#include <memory>

#include "absl/time/clock.h"
#include "app/model/export_source.h"
#include "cli/command/export_commands.h"
#include "cli/command/shared_flags.h"
#include "cli/terminal/exit_code.h"
#include "cli/terminal/progress.h"
#include "worker/export/dnn_plugin/dnn_plugin.h"

namespace cistern {
namespace {

struct DnnPluginFlags {
  app::ExportOptions source;
  std::string out;
};

absl::StatusOr<Report> RunExportDnnPlugin(const DnnPluginFlags& flags) {
  CISTERN_ASSIGN_OR_RETURN(const app::ExportSource source, app::OpenExportSource(flags.source));
  const absl::Time start = absl::Now();
  LocalFileSystem files;
  const std::string folder = app::FolderOf(flags.out);
  const auto written = WriteDnnPlugin(files, source.config, *source.model, folder);
  if (!written.ok()) return app::WithFleetFix(written.status(), flags.source.model.fleet);
  const double seconds = absl::ToDoubleSeconds(absl::Now() - start);
  Report report;
  report.json["path"] = folder;
  report.json["commit"] = source.model->version().commit;
  report.json["pass"] = source.model->version().pass;
  report.json["files"] = written->files;
  report.json["numbers"] = written->numbers;
  report.json["bytes"] = written->bytes;
  report.json["seconds"] = seconds;
  report.text =
      absl::StrCat(folder, "\nexported ", written->files, " parameters, ", written->numbers,
                   " numbers, ", BytesText(written->bytes), " in ", DurationText(seconds), "\n");
  return report;
}

}  // namespace

void AddExportDnnPlugin(Command& all) {
  auto flags = std::make_shared<DnnPluginFlags>();
  Command& command =
      all.Add("dnn-plugin", "Writes the dense parameters as Paddle's tensor files.",
              "cistern export dnn-plugin deepfm.json --model runs/deepfm --out dnn_plugin");
  AddExportFlags(command, &flags->source);
  command.Flag("--out", &flags->out,
               {"DIR", "Folder of the files; an earlier export there is replaced.",
                "--out dnn_plugin", kRequired});
  command.Does([flags](Console&) { return RunExportDnnPlugin(*flags); });
}

}  // namespace cistern
