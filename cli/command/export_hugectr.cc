#include <filesystem>
#include <memory>

#include "absl/time/clock.h"
#include "app/model/export_source.h"
#include "app/run/run_folder.h"
#include "cli/command/export_commands.h"
#include "cli/command/shared_flags.h"
#include "cli/terminal/progress.h"
#include "worker/export/hugectr/hugectr_model.h"

namespace cistern {
namespace {

struct HugectrFlags {
  app::ExportOptions source;
  std::string out;
  std::string form = "v2";
  uint64_t iteration = 0;
};

absl::StatusOr<Report> RunExportHugectr(const HugectrFlags& flags) {
  // The manifest lists the names of the files.
  CISTERN_RETURN_IF_ERROR(
      app::CheckNameForJson("--out", std::filesystem::path(flags.out).filename().string()));
  CISTERN_ASSIGN_OR_RETURN(const app::ExportSource source, app::OpenExportSource(flags.source));
  const absl::Time start = absl::Now();
  LocalFileSystem files;
  const HugectrPlace place = {flags.out, flags.iteration,
                              flags.form == "v3" ? HugectrForm::kV3 : HugectrForm::kV2,
                              /*manifest=*/true};
  const auto written = WriteHugectrModel(files, source.config, *source.model, place);
  if (!written.ok()) return app::WithFleetFix(written.status(), flags.source.model.fleet);
  Report report;
  report.json["form"] = flags.form;
  report.json["files"] = written->paths;
  report.json["commit"] = source.model->version().commit;
  report.json["rows"] = written->rows;
  report.json["bytes"] = written->bytes;
  report.json["seconds"] = absl::ToDoubleSeconds(absl::Now() - start);
  for (const std::string& path : written->paths) absl::StrAppend(&report.text, path, "\n");
  absl::StrAppend(&report.text, "exported ", written->rows, " rows, ", BytesText(written->bytes),
                  " in ", DurationText(absl::ToDoubleSeconds(absl::Now() - start)), "\n");
  return report;
}

}  // namespace

void AddExportHugectr(Command& all) {
  auto flags = std::make_shared<HugectrFlags>();
  Command& command =
      all.Add("hugectr", "Writes HugeCTR's dense and sparse model files: PREFIX_dense_0.model ...",
              "cistern export hugectr deepfm.json --model runs/deepfm --out deepfm --form v3");
  AddExportFlags(command, &flags->source);
  command.Flag("--out", &flags->out,
               {"PREFIX", "Prefix of the file names; existing files are replaced.",
                "--out exported/deepfm", kRequired});
  command.Choice(
      "--form", &flags->form,
      {"v2|v3",
       "v2: one file per embedding, as in HugeCTR 2.3; v3: one folder per embedding, as in 3.x, "
       "with the optimizer state.",
       "--form v3"});
  command.Flag("--iteration", &flags->iteration,
               {"INT", "The number in the file names.", "--iteration 1000"});
  command.Does([flags](Console&) { return RunExportHugectr(*flags); });
}

}  // namespace cistern
