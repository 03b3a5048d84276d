// One version of a serving folder, opened.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/base/status.h"
#include "common/serving/rows_file.h"
#include "common/serving/serving_version.h"
#include "serve/predictor/predictor.h"
#include "worker/data/recipe/recipe_folder.h"
#include "worker/model/config/model_config.h"

namespace cistern::serve {

// The rows of a table: those of its oldest layer, used where they are mapped, and above them those
// of the others. The newest few are used where they are mapped, too; the rest is merged in memory.
// So a lookup probes few layers, and a new version costs little more than its changes: requests run
// meanwhile.
//
// Threads: immutable; any thread.
class ServedTable {
 public:
  // previous: the same table of an older version, whose layers are reused; may be null.
  // verify: read every byte of the oldest layer too. kDataLoss: a file is missing or corrupt, or
  // the rows do not have the digest of `table`.
  static absl::StatusOr<std::shared_ptr<const ServedTable>> Open(const std::string& root,
                                                                 const ServingTable& table,
                                                                 RowPrecision precision,
                                                                 const ServedTable* previous,
                                                                 bool verify);
  ~ServedTable();

  // Writes the weights of keys[i] to out + i * stride, zeros for a key without a row. Returns the
  // number of those.
  size_t Lookup(absl::Span<const Key> keys, float* out, size_t stride) const;

  uint32_t dim() const { return table_.dim; }

  // Maps the pages of the oldest layer, so that no request waits for the first access to one, while
  // go_on() is true.
  void Prefetch(const std::function<bool()>& go_on) const;

 private:
  struct Layer;  // a file, or bytes in memory, and the view of them
  ServedTable() = default;
  // Opens the layers above the base. previous: has the first of them; may be null.
  absl::Status AddChanges(const std::string& root, const ServedTable* previous);
  absl::StatusOr<std::shared_ptr<const Layer>> OpenChanges(const std::string& root,
                                                           const ServingFile& file) const;
  // All layers, oldest first.
  std::vector<const Layer*> Layers() const;
  // Merges the layers above the base into merged_.
  absl::Status Merge();
  // Adds to *digest what changes when `layer` is put above `below`, oldest first.
  static void AddToDigest(const Layer& layer, absl::Span<const Layer* const> below,
                          uint64_t* digest);

  ServingTable table_;
  RowPrecision precision_ = RowPrecision::kFloat32;
  std::shared_ptr<const Layer> base_, merged_;        // merged_: null without any
  std::vector<std::shared_ptr<const Layer>> recent_;  // above merged_, oldest first
  uint64_t base_digest_ = 0;
};

// Threads: immutable; any thread.
class ServedState {
 public:
  // Opens the version that HEAD names. previous: what is reused; may be null.
  static absl::StatusOr<std::shared_ptr<const ServedState>> Open(const std::string& root,
                                                                 const ServingHead& head,
                                                                 const ServedState* previous,
                                                                 bool verify);

  const ServingHead& head() const { return head_; }
  const ServingVersion& version() const { return version_; }
  // The model for prediction: its tables hold weights only, without statistics and optimizer
  // state.
  const model::ModelConfig& config() const { return config_; }
  const PredictorShape& shape() const { return shape_; }
  // By embedding.
  const std::vector<std::shared_ptr<const ServedTable>>& tables() const { return tables_; }
  // ServedTable::Prefetch of each table.
  void Prefetch(const std::function<bool()>& go_on) const;
  // By dense table of the version: [rows].
  const std::vector<std::vector<float>>& dense() const { return dense_; }
  // Null: the version has no recipe.
  const std::shared_ptr<const data::OwnedEncoder>& encoder() const { return encoder_; }

 private:
  absl::Status ReadModel(const std::string& root);
  absl::Status ReadRecipe(const std::string& root, const ServedState* previous);
  absl::Status ReadDense(const std::string& root);

  ServingHead head_;
  ServingVersion version_;
  model::ModelConfig config_;
  PredictorShape shape_;
  std::vector<std::shared_ptr<const ServedTable>> tables_;
  std::vector<std::vector<float>> dense_;
  std::shared_ptr<const data::OwnedEncoder> encoder_;
};

}  // namespace cistern::serve
