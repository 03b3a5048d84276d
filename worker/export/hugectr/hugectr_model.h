// Export of a whole model to HugeCTR's files from committed state, and import into empty servers.
// docs/formats.md specifies the files byte by byte.
//
//   <prefix><e>_sparse_<iter>.model        rows of embedding e = 0, 1, ...: sparse_rows.h
//   <prefix>_opt_dense_<iter>.model        only v3 and update rules with state: dense_weights.h
//   <prefix>_dense_<iter>.model.ntp.json   only models with BatchNorm
//   <prefix>_export_<iter>.json            only exports: where the model comes from, and hashes
//   <prefix>_dense_<iter>.model            appears last: while it is there, all others belong to it
//
// <prefix> is prepended verbatim ("./" gives "./_dense_1000.model"), relative to the current folder
// as in HugeCTR. An import resets the state that these files do not hold: the number of steps
// (Adam's bias correction, the learning rate's schedule) and, in v2, the optimizer state.
#pragma once

#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/io/file_system.h"
#include "worker/client/parameter_client.h"
#include "worker/export/committed_model.h"
#include "worker/export/hugectr/sparse_rows.h"
#include "worker/model/config/model_config.h"

namespace cistern {

struct HugectrPlace {
  std::string prefix;
  uint64_t iteration = 0;
  HugectrForm form = HugectrForm::kV2;
  bool manifest = false;  // also write one (worker/export/export_manifest.h)

  std::string dense() const;
  std::string opt_dense() const;
  std::string sparse(size_t embedding) const;
  std::string manifest_path() const;
};

struct HugectrWritten {
  std::vector<std::string> paths;  // in the order of writing
  uint64_t rows = 0, bytes = 0;
};

// Writes the committed state. The files appear together once all are on disk (file_set.h), and
// replace those of an older export of this name. Memory: a buffer per file, the dense tables, and
// that of KeySlots. kInvalidArgument: an embedding with the accessor ctr. Errors name the file.
absl::StatusOr<HugectrWritten> WriteHugectrModel(FileSystem& files,
                                                 const model::ModelConfig& config,
                                                 CommittedModel& model, const HugectrPlace& place);

// Whether snapshots of this training write these files: training by iterations, without ctr rows.
bool WritesHugectrModel(const model::ModelConfig& config);

// Checks that a snapshot of the servers' rows and of this run's new rows could be written: each key
// of the Localized embeddings has a known slot (key_slots.h). Reads the keys of their tables, and
// the training data where it determines slots. Errors: those of KeySlots.
absl::Status CheckSnapshotSlots(FileSystem& files, const model::ModelConfig& config,
                                ParameterClient& client);

// Whether a new run of this model starts from such files.
bool StartsFromHugectrModel(const model::ModelConfig& config);

// The contents of the files that a model starts from.
struct HugectrStart {
  struct Rows {
    size_t embedding = 0;
    std::string path;
    uint64_t rows = 0;
  };
  std::vector<Rows> sparse;
  std::string dense_path;         // empty: the model names none
  uint64_t dense_weights = 0;     // the count of numbers in it
  bool has_dense_states = false;  // the model names a solver.dense_opt_states_file
};

// Opens the files that the model names, checks their sizes and reads the dense ones: the checks of
// ReadHugectrModel that need neither servers nor rows.
absl::StatusOr<HugectrStart> ReadHugectrStart(FileSystem& files, const model::ModelConfig& config);

// Imports the files that the model names into empty servers, as a pass of its own: commits all of
// it or nothing. worker_state: the position to commit with it. Opens every file and checks its size
// before anything is sent; rows are sent in blocks.
// kInvalidArgument: a file is missing or does not match the model, the servers are not empty, or a
// file holds a key twice; kDataLoss: invalid content.
absl::Status ReadHugectrModel(FileSystem& files, const model::ModelConfig& config,
                              ParameterClient& client, const std::string& worker_state);

}  // namespace cistern
