// Writes the dense network as an ONNX file; its inputs are pooled embeddings
// (worker/export/onnx/onnx_model.h).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "app/job_calls.h"
#include "app/model/export_source.h"
#include "worker/export/onnx/onnx_model.h"

namespace cistern::app {

struct OnnxExport {
  ExportOptions source;
  OnnxPlace place;  // existing files are replaced, but not the model file
};

struct OnnxExported {
  OnnxWritten written;
  CommittedVersion version;
  std::string trained_in;  // "float32"; the network always computes in float32
  double seconds = 0;
};

// Errors as OpenExportSource and WriteOnnxModel; kCancelled: calls.stop was set.
absl::StatusOr<OnnxExported> ExportOnnx(const OnnxExport& options, const JobCalls& calls);

nlohmann::ordered_json JsonOf(const OnnxExported& exported);

}  // namespace cistern::app
