#include "app/export/export_onnx.h"

#include <memory>

#include "absl/strings/str_join.h"
#include "cli/command/export_commands.h"
#include "cli/command/job_console.h"
#include "cli/command/shared_flags.h"
#include "common/base/amount_text.h"

namespace cistern::cli {
namespace {

// " (commit 12, pass 3)".
std::string VersionText(const CommittedVersion& version) {
  if (version.commit == 0) return absl::StrCat(" (pass ", version.pass, ")");
  return absl::StrCat(" (commit ", version.commit, ", pass ", version.pass, ")");
}

std::string TextOf(const app::OnnxExported& exported) {
  const auto& written = exported.written;
  return absl::StrCat(absl::StrJoin(written.paths, "\n"), "\n", "inputs   ",
                      absl::StrJoin(written.inputs, ", "), "\n", "outputs  ",
                      absl::StrJoin(written.outputs, ", "), "\n", "exported ", written.layers,
                      " layers, ", written.parameters, " parameters, ", BytesText(written.bytes),
                      VersionText(exported.version), " in ", DurationText(exported.seconds), "\n");
}

}  // namespace

void AddExportOnnx(Command& all) {
  auto options = std::make_shared<app::OnnxExport>();
  Command& command =
      all.Add("onnx", "Writes the dense network as an ONNX file; its inputs are pooled embeddings.",
              "cistern export onnx deepfm.json --model runs/deepfm --out deepfm.onnx");
  AddExportFlags(command, &options->source);
  command.Flag(
      "--out", &options->place.path,
      {"FILE", "The ONNX file; FILE.json describes its inputs. Existing files are replaced.",
       "--out exported/deepfm.onnx", kRequired});
  command.Switch(
      "--logit", &options->place.with_logit,
      {"", "Adds a second output, logit: the number that the probability is computed from.",
       "--logit"});
  command.Does([options](Console& console) -> absl::StatusOr<Report> {
    CISTERN_ASSIGN_OR_RETURN(const app::OnnxExported exported,
                             app::ExportOnnx(*options, JobConsole(console).calls()));
    return Report{app::JsonOf(exported), TextOf(exported), absl::OkStatus()};
  });
}

}  // namespace cistern::cli
