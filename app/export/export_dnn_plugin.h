// Writes the dense parameters as Paddle's tensor files (worker/export/dnn_plugin/dnn_plugin.h).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "app/job_calls.h"
#include "app/model/export_source.h"
#include "worker/export/dnn_plugin/dnn_plugin.h"

namespace cistern::app {

struct DnnPluginExport {
  ExportOptions source;
  std::string out;  // the folder of the files; an earlier export there is replaced
};

struct DnnPluginExported {
  std::string folder;
  DnnPluginWritten written;
  CommittedVersion version;
  double seconds = 0;
};

// Errors as OpenExportSource and WriteDnnPlugin; kCancelled: calls.stop was set.
absl::StatusOr<DnnPluginExported> ExportDnnPlugin(const DnnPluginExport& options,
                                                  const JobCalls& calls);

nlohmann::ordered_json JsonOf(const DnnPluginExported& exported);

}  // namespace cistern::app
