// Writes HugeCTR's dense and sparse model files (worker/export/hugectr/hugectr_model.h).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "app/job_calls.h"
#include "app/model/export_source.h"
#include "worker/export/hugectr/hugectr_model.h"

namespace cistern::app {

struct HugectrExport {
  ExportOptions source;
  std::string out;                      // the prefix of the file names; existing files are replaced
  HugectrForm form = HugectrForm::kV2;  // of HugeCTR 2.3, or of 3.x with the optimizer state
  uint64_t iteration = 0;               // the number in the file names
};

struct HugectrExported {
  HugectrForm form = HugectrForm::kV2;
  HugectrWritten written;
  CommittedVersion version;
  double seconds = 0;
};

// Errors as OpenExportSource and WriteHugectrModel; kInvalidArgument: a name that no JSON can hold.
// kCancelled: calls.stop was set.
absl::StatusOr<HugectrExported> ExportHugectr(const HugectrExport& options, const JobCalls& calls);

nlohmann::ordered_json JsonOf(const HugectrExported& exported);

}  // namespace cistern::app
