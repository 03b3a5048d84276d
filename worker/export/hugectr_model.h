// A whole model in HugeCTR's files: written from committed state, and read into servers that hold
// nothing. Byte by byte: docs/formats.md.
//
//   <prefix><e>_sparse_<iter>.model        rows of embedding e = 0, 1, ...: sparse_rows.h
//   <prefix>_opt_dense_<iter>.model        v3, and a rule that has state: dense_weights.h
//   <prefix>_dense_<iter>.model.ntp.json   a model with BatchNorm
//   <prefix>_dense_<iter>.model            written last
//
// <prefix> is put before a name as it is ("./" gives "./_dense_1000.model") and counts from the
// current folder, as HugeCTR's. What these files have no room for begins anew with them: the number
// of steps (Adam's bias correction, the learning rate's schedule) and, in v2, optimizer state.
#pragma once

#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/io/file_system.h"
#include "worker/client/parameter_client.h"
#include "worker/export/sparse_rows.h"
#include "worker/model/config/model_config.h"

namespace cistern {

struct HugectrPlace {
  std::string prefix;
  uint64_t iteration = 0;
  HugectrForm form = HugectrForm::kV2;

  std::string dense() const;
  std::string opt_dense() const;
  std::string sparse(size_t embedding) const;
};

struct HugectrWritten {
  std::vector<std::string> paths;  // in the order in which they were written
  uint64_t rows = 0, bytes = 0;
};

// Writes the servers' committed state in place of what stood there; each file and folder appears
// whole. Memory: a buffer a file, the dense tables, and what KeySlots takes.
// kInvalidArgument: an embedding with the accessor ctr. Errors name the file.
absl::StatusOr<HugectrWritten> WriteHugectrModel(FileSystem& files, const ModelConfig& config,
                                                 ParameterClient& client,
                                                 const HugectrPlace& place);

// Whether a snapshot of this training writes these files: by iterations, and no ctr rows.
bool WritesHugectrModel(const ModelConfig& config);

// Whether a snapshot of what the servers hold now, and of what this run adds, could be written:
// that a slot is known for each key of the Localized embeddings (key_slots.h). Reads the keys of
// their tables, and the training data where they have to tell. Errors are those of KeySlots.
absl::Status CheckSnapshotSlots(FileSystem& files, const ModelConfig& config,
                                ParameterClient& client);

// Whether a fresh run of this model starts from such files.
bool StartsFromHugectrModel(const ModelConfig& config);

// What of a model such files hold.
struct HugectrStart {
  struct Rows {
    size_t embedding = 0;
    std::string path;
    uint64_t rows = 0;
  };
  std::vector<Rows> sparse;
  std::string dense_path;         // empty: none is named
  uint64_t dense_weights = 0;     // numbers in it
  bool has_dense_states = false;  // solver.dense_opt_states_file is named
};

// Opens and measures the files that the model names, and reads the dense ones: as
// ReadHugectrModel, without servers and without a look at the rows.
absl::StatusOr<HugectrStart> LookAtHugectrModel(FileSystem& files, const ModelConfig& config);

// Reads the files that the model names into servers that hold nothing, as a pass of its own:
// all of it is committed or nothing is. worker_state: the position that goes with it. Every file is
// opened and measured before anything is sent; rows go in blocks.
// kInvalidArgument: a file that is not there or does not fit, or servers that hold something,
// or a key that is in a file twice; kDataLoss: what is in it.
absl::Status ReadHugectrModel(FileSystem& files, const ModelConfig& config, ParameterClient& client,
                              const std::string& worker_state);

}  // namespace cistern
