#include "app/export/export_dnn_plugin.h"

#include <nlohmann/json.hpp>

#include "absl/time/clock.h"

namespace cistern::app {

absl::StatusOr<DnnPluginExported> ExportDnnPlugin(const DnnPluginExport& options,
                                                  const JobCalls& calls) {
  CISTERN_ASSIGN_OR_RETURN(const ExportSource source,
                           OpenExportSource(options.source, false, calls.stop));
  CISTERN_RETURN_IF_ERROR(RefuseKeyWeights(source.config, "a dnn_plugin"));
  const absl::Time start = absl::Now();
  LocalFileSystem files;
  const std::string folder = FolderOf(options.out);
  const auto written = WriteDnnPlugin(files, source.config, *source.model, folder);
  if (!written.ok()) return WithFleetFix(written.status(), options.source.model.fleet);
  return DnnPluginExported{folder, *written, source.model->version(),
                           absl::ToDoubleSeconds(absl::Now() - start)};
}

nlohmann::ordered_json JsonOf(const DnnPluginExported& exported) {
  nlohmann::ordered_json json;
  json["path"] = exported.folder;
  json["commit"] = exported.version.commit;
  json["pass"] = exported.version.pass;
  json["files"] = exported.written.files;
  json["numbers"] = exported.written.numbers;
  json["bytes"] = exported.written.bytes;
  json["seconds"] = exported.seconds;
  return json;
}

}  // namespace cistern::app
