// The dense parameters of a model as Paddle names and shapes them.
//
// clang-format off
//   InnerProduct, FusedInnerProduct   NAME.w_0 [inputs, outputs], NAME.b_0 [outputs]
//   BatchNorm                         NAME.w_0 [columns] scale, NAME.b_0 bias, NAME.w_1 mean,
//                                     NAME.w_2 variance
//   Multiply                          NAME.w_0 [inputs, columns / inputs]
//   MultiCross                        NAME.w_0, NAME.b_0 [columns] of the first cross, NAME.w_1,
//                                     NAME.b_1 of the second ...
// clang-format on
#pragma once

#include <string>
#include <vector>

#include "common/base/status.h"
#include "worker/model/config/model_config.h"
#include "worker/model/graph/model_summary.h"

namespace cistern {

struct PaddleParameter {
  std::string name, layer, type;  // "fc1.w_0", "fc1", "InnerProduct"
  std::vector<int64_t> dims;
  bool running = false;  // in the table "dense_state", else in "dense"
  size_t offset = 0;     // of the first number in that table
  size_t count() const;  // of numbers
};

// All parameters in the order of the layers, each layer's in the order above. kInvalidArgument: a
// layer's name is used twice or cannot be a file name; a layer without a form above.
absl::StatusOr<std::vector<PaddleParameter>> PaddleParametersOf(const model::ModelConfig& config,
                                                                const model::ModelSummary& summary);

}  // namespace cistern
