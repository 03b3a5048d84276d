#include "cli/command/export_command.h"

#include <memory>

#include "absl/time/clock.h"
#include "cli/session/model_source.h"
#include "cli/terminal/exit_code.h"
#include "cli/terminal/progress.h"
#include "worker/export/hugectr_model.h"

namespace cistern {
namespace {

struct ExportFlags {
  ModelFlags model;
  std::string model_dir, out;
  std::string form = "v2";
  uint64_t iteration = 0;
};

absl::StatusOr<Report> RunExportHugectr(const ExportFlags& flags, Console& console) {
  CISTERN_ASSIGN_OR_RETURN(const ModelConfig config, ReadModelConfig(flags.model));
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<FleetSession> fleet,
                           OpenTrainedFleet(flags.model, config, flags.model_dir, console));
  CISTERN_ASSIGN_OR_RETURN(const v1::Schema schema, SchemaOf(config));
  CISTERN_RETURN_IF_ERROR(WithFix(fleet->client().CreateTables(schema),
                                  "use the model file that the model was trained with"));
  const absl::Time start = absl::Now();
  LocalFileSystem files;
  const HugectrPlace place = {flags.out, flags.iteration,
                              flags.form == "v3" ? HugectrForm::kV3 : HugectrForm::kV2};
  const auto written = WriteHugectrModel(files, config, fleet->client(), place);
  if (!written.ok()) return WithFleetFix(written.status(), flags.model.fleet);
  Report report;
  report.json["form"] = flags.form;
  report.json["files"] = written->paths;
  report.json["rows"] = written->rows;
  report.json["bytes"] = written->bytes;
  report.json["seconds"] = absl::ToDoubleSeconds(absl::Now() - start);
  for (const std::string& path : written->paths) absl::StrAppend(&report.text, path, "\n");
  absl::StrAppend(&report.text, "exported ", written->rows, " rows, ", BytesText(written->bytes),
                  " in ", DurationText(absl::ToDoubleSeconds(absl::Now() - start)), "\n");
  return report;
}

}  // namespace

void AddExportCommands(Command& root) {
  Command& all = root.Add("export", "Writes a trained model in another program's file format.",
                          "cistern export hugectr deepfm.json --model runs/deepfm --out deepfm");
  auto flags = std::make_shared<ExportFlags>();
  Command& command =
      all.Add("hugectr", "Writes HugeCTR's dense and sparse model files: PREFIX_dense_0.model ...",
              "cistern export hugectr deepfm.json --model runs/deepfm --out deepfm --form v3");
  AddModelFlags(command, &flags->model);
  command.Flag("--model", &flags->model_dir,
               {"DIR",
                "The trained model: the --out folder of a training run, or the model folder in it. "
                "With --servers it is loaded only if the servers hold no model.",
                "--model runs/deepfm"});
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
  command.Does([flags](Console& console) { return RunExportHugectr(*flags, console); });
}

}  // namespace cistern
