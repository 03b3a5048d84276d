#include "app/export/export_onnx.h"

#include <nlohmann/json.hpp>

#include "absl/time/clock.h"
#include "common/base/hash_text.h"
#include "common/io/new_file.h"
#include "worker/export/onnx/network_description.h"

namespace cistern::app {
namespace {

// An export must not replace the model file.
absl::Status CheckOutput(const OnnxExport& options) {
  LocalFileSystem files;
  for (const std::string& path : {options.place.path, options.place.path + ".json"}) {
    CISTERN_ASSIGN_OR_RETURN(const bool is_there, files.Exists(path));
    if (!is_there) continue;
    CISTERN_RETURN_IF_ERROR(
        WithOptions(NewFile::Check(path, {options.source.model.config}), {"out"}));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<OnnxExported> ExportOnnx(const OnnxExport& options, const JobCalls& calls) {
  CISTERN_RETURN_IF_ERROR(CheckOutput(options));
  CISTERN_ASSIGN_OR_RETURN(const ExportSource source,
                           OpenExportSource(options.source, false, calls.stop));
  const absl::Time start = absl::Now();
  LocalFileSystem files;
  auto written = WriteOnnxModel(files, source.config, *source.model, options.place);
  if (!written.ok()) return WithFleetFix(written.status(), options.source.model.fleet);
  OnnxExported exported = {*std::move(written), source.model->version(), TrainedIn(source.config),
                           absl::ToDoubleSeconds(absl::Now() - start)};
  if (exported.trained_in != "float32") {
    calls.Note(absl::StrCat("note: the model is trained with ", exported.trained_in,
                            " activations, and the exported network computes in float32: its "
                            "predictions differ from those of cistern predict by rounding"));
  }
  return exported;
}

nlohmann::ordered_json JsonOf(const OnnxExported& exported) {
  const OnnxWritten& written = exported.written;
  nlohmann::ordered_json json;
  json["files"] = written.paths;
  json["bytes"] = written.bytes;
  json["xxh3"] = HashText(written.xxh3);
  json["layers"] = written.layers;
  json["parameters"] = written.parameters;
  json["inputs"] = written.inputs;
  json["outputs"] = written.outputs;
  json["commit"] = exported.version.commit;
  json["pass"] = exported.version.pass;
  json["trained_in"] = exported.trained_in;
  json["seconds"] = exported.seconds;
  return json;
}

}  // namespace cistern::app
