#include "app/export/export_hugectr.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "absl/time/clock.h"
#include "app/run/run_folder.h"

namespace cistern::app {

absl::StatusOr<HugectrExported> ExportHugectr(const HugectrExport& options, const JobCalls& calls) {
  // The manifest lists the names of the files.
  const std::string name = std::filesystem::path(options.out).filename().string();
  CISTERN_RETURN_IF_ERROR(WithOptions(CheckNameForJson("the name of the files", name), {"out"}));
  CISTERN_ASSIGN_OR_RETURN(const ExportSource source,
                           OpenExportSource(options.source, false, calls.stop));
  CISTERN_RETURN_IF_ERROR(RefuseKeyWeights(source.config, "HugeCTR"));
  const absl::Time start = absl::Now();
  LocalFileSystem files;
  auto written = WriteHugectrModel(files, source.config, *source.model,
                                   {options.out, options.iteration, options.form, true});
  if (!written.ok()) return WithFleetFix(written.status(), options.source.model.fleet);
  return HugectrExported{options.form, *std::move(written), source.model->version(),
                         absl::ToDoubleSeconds(absl::Now() - start)};
}

nlohmann::ordered_json JsonOf(const HugectrExported& exported) {
  nlohmann::ordered_json json;
  json["form"] = exported.form == HugectrForm::kV3 ? "v3" : "v2";
  json["files"] = exported.written.paths;
  json["commit"] = exported.version.commit;
  json["rows"] = exported.written.rows;
  json["bytes"] = exported.written.bytes;
  json["seconds"] = exported.seconds;
  return json;
}

}  // namespace cistern::app
