#include <memory>

#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "app/model/export_source.h"
#include "cli/command/export_commands.h"
#include "cli/command/shared_flags.h"
#include "cli/terminal/exit_code.h"
#include "cli/terminal/progress.h"
#include "common/base/hash_text.h"
#include "common/io/new_file.h"
#include "worker/export/onnx/network_description.h"
#include "worker/export/onnx/onnx_model.h"

namespace cistern {
namespace {

struct OnnxFlags {
  app::ExportOptions source;
  OnnxPlace place;
};

// An export must not replace the model file.
absl::Status CheckOutput(const OnnxFlags& flags) {
  LocalFileSystem files;
  for (const std::string& path : {flags.place.path, flags.place.path + ".json"}) {
    CISTERN_ASSIGN_OR_RETURN(const bool is_there, files.Exists(path));
    if (!is_there) continue;
    CISTERN_RETURN_IF_ERROR(AddContext(NewFile::Check(path, {flags.source.model.config}), "--out"));
  }
  return absl::OkStatus();
}

// " (commit 12, pass 3)".
std::string VersionText(const CommittedVersion& version) {
  if (version.commit == 0) return absl::StrCat(" (pass ", version.pass, ")");
  return absl::StrCat(" (commit ", version.commit, ", pass ", version.pass, ")");
}

Report ReportOf(const ModelConfig& config, const CommittedVersion& version,
                const OnnxWritten& written, double seconds) {
  Report report;
  report.json["files"] = written.paths;
  report.json["bytes"] = written.bytes;
  report.json["xxh3"] = HashText(written.xxh3);
  report.json["layers"] = written.layers;
  report.json["parameters"] = written.parameters;
  report.json["inputs"] = written.inputs;
  report.json["outputs"] = written.outputs;
  report.json["commit"] = version.commit;
  report.json["pass"] = version.pass;
  report.json["trained_in"] = TrainedIn(config);
  report.json["seconds"] = seconds;
  report.text = absl::StrCat(absl::StrJoin(written.paths, "\n"), "\n");
  absl::StrAppend(&report.text, "inputs   ", absl::StrJoin(written.inputs, ", "), "\n", "outputs  ",
                  absl::StrJoin(written.outputs, ", "), "\n");
  absl::StrAppend(&report.text, "exported ", written.layers, " layers, ", written.parameters,
                  " parameters, ", BytesText(written.bytes), VersionText(version), " in ",
                  DurationText(seconds), "\n");
  return report;
}

absl::StatusOr<Report> RunExportOnnx(const OnnxFlags& flags, Console& console) {
  CISTERN_RETURN_IF_ERROR(CheckOutput(flags));
  CISTERN_ASSIGN_OR_RETURN(const app::ExportSource source, app::OpenExportSource(flags.source));
  const absl::Time start = absl::Now();
  LocalFileSystem files;
  const auto written = WriteOnnxModel(files, source.config, *source.model, flags.place);
  if (!written.ok()) return app::WithFleetFix(written.status(), flags.source.model.fleet);
  if (TrainedIn(source.config) != "float32") {
    console.Say(absl::StrCat("note: the model is trained with ", TrainedIn(source.config),
                             " activations, and the exported network computes in float32: its "
                             "predictions differ from those of cistern predict by rounding"));
  }
  return ReportOf(source.config, source.model->version(), *written,
                  absl::ToDoubleSeconds(absl::Now() - start));
}

}  // namespace

void AddExportOnnx(Command& all) {
  auto flags = std::make_shared<OnnxFlags>();
  Command& command =
      all.Add("onnx", "Writes the dense network as an ONNX file; its inputs are pooled embeddings.",
              "cistern export onnx deepfm.json --model runs/deepfm --out deepfm.onnx");
  AddExportFlags(command, &flags->source);
  command.Flag(
      "--out", &flags->place.path,
      {"FILE", "The ONNX file; FILE.json describes its inputs. Existing files are replaced.",
       "--out exported/deepfm.onnx", kRequired});
  command.Switch(
      "--logit", &flags->place.with_logit,
      {"", "Adds a second output, logit: the number that the probability is computed from.",
       "--logit"});
  command.Does([flags](Console& console) { return RunExportOnnx(*flags, console); });
}

}  // namespace cistern
