// HugeCTR's keysets of a model's data: written, or checked.
#pragma once

#include <string>
#include <vector>

#include "common/base/status.h"
#include "worker/data/format/keyset.h"

namespace cistern::app {

struct ModelKeysetOptions {
  std::string model;              // whose Data layer describes the data
  std::vector<std::string> set;   // overrides of it
  std::vector<std::string> data;  // file lists or data files; empty: the model's source
  std::string input;              // only the keys of this sparse input; empty: of all
  int key_bits = 0;               // of the keys in the file; 0: as in the data
  std::string file;
  bool check = false;  // checks `file`, which must hold every key of the data; false: writes it
};

struct ModelKeyset : data::KeysetSummary {
  bool wide_keys = true;
};

// Errors of WriteKeyset and CheckKeyset, with a missing file as kInvalidArgument; kInvalidArgument
// too: the model has no such input (option input), or `file` is the model file.
absl::StatusOr<ModelKeyset> KeysetOfModel(const ModelKeysetOptions& options);

}  // namespace cistern::app
