// Export of a model's dense network as an ONNX file, from committed state. docs/formats.md
// specifies both files.
//
//   FILE        the layers from the pooled embeddings to the probability, with their weights
//   FILE.json   where FILE comes from, and how its inputs are made: network_description.h
//
// The rows of the embeddings are not in these files.
#pragma once

#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/io/file_system.h"
#include "worker/export/committed_model.h"
#include "worker/model/config/model_config.h"

namespace cistern {

struct OnnxPlace {
  std::string path;
  bool with_logit = false;  // a second output: the logit
};

struct OnnxWritten {
  std::vector<std::string> paths;  // the ONNX file, then its description
  uint64_t bytes = 0;              // of the ONNX file
  uint64_t xxh3 = 0;               // its hash
  size_t layers = 0, parameters = 0;
  std::vector<std::string> inputs, outputs;
};

// Writes both files and replaces existing ones; each appears atomically, once both are complete and
// the state is known to be one. The description appears last; it contains the hash of the ONNX
// file. Memory: the dense tables and three times the network's weights. kInvalidArgument,
// kDataLoss: those of FindDenseNetwork and ReadDenseValues. kAborted: of Recheck.
absl::StatusOr<OnnxWritten> WriteOnnxModel(FileSystem& files, const model::ModelConfig& config,
                                           CommittedModel& model, const OnnxPlace& place);

}  // namespace cistern
