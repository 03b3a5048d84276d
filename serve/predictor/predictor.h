// Predictions from an exported model, without servers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/base/status.h"
#include "common/base/types.h"
#include "worker/data/recipe/recipe_folder.h"

namespace cistern::serve {

// The shape of a sample.
struct PredictorShape {
  size_t label_dim = 1, dense_dim = 0;
  struct Input {
    std::string name;  // "top" of the model file
    uint32_t slot_num = 0;
    bool key_weights = false;  // its keys have weights (cistern.key_weights)
  };
  std::vector<Input> inputs;
};

// Samples to predict. All arrays belong to the caller and are read during the call only.
struct PredictRequest {
  size_t samples = 0;
  absl::Span<const float> dense;  // [samples, dense_dim]
  struct Input {
    absl::Span<const Key> keys;  // [offsets.back()]
    absl::Span<const uint32_t>
        offsets;  // [samples * slot_num + 1], by (sample, slot); offsets[0] = 0
    absl::Span<const float> weights = {};  // as keys if they have weights, else empty; finite
  };
  std::vector<Input> inputs;  // as in PredictorShape
};

// What is served at the moment.
struct ServedVersion {
  uint64_t commit = 0;  // the number of the commit; the committed pass of a state without commits
  std::string folder;   // of its files
};

// Attempts to read the folder and to open its current version.
struct FollowState {
  uint64_t failures = 0;
  bool failing = false;  // the last attempt failed; an older version is served
};

// Threads: any thread may call any method.
class Predictor {
 public:
  virtual ~Predictor() = default;

  // The name of the model that is served: what its version says, unless PredictorOptions name it.
  virtual std::string name() const = 0;
  virtual const PredictorShape& shape() const = 0;
  virtual ServedVersion version() const = 0;

  // predictions: [samples, label_dim], the probability of each label. version: the one that
  // predicted all of them.
  //
  // A key that the model has no row for reads zeros, as in `cistern eval`; *unseen counts the
  // occurrences of such keys (may be null). kInvalidArgument: sizes or offsets do not fit the
  // shape, a dense feature is not finite, or there are more than max_samples() samples.
  virtual absl::Status Predict(const PredictRequest& request, absl::Span<float> predictions,
                               ServedVersion* version, uint64_t* unseen) = 0;
  virtual size_t max_samples() const = 0;

  // How rows of text become samples of this model; null: it was exported without a recipe. The same
  // for all versions.
  virtual std::shared_ptr<const data::OwnedEncoder> encoder() const { return nullptr; }

  // Looks for a newer version now; true if it is served from now on. After an error (those of
  // OpenPredictor) the older version stays. Versions may also change by themselves.
  virtual absl::StatusOr<bool> Follow() { return false; }

  // How following the folder goes.
  virtual FollowState follow_state() const { return {}; }
};

}  // namespace cistern::serve
