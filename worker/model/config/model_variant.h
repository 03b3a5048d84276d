// Variants of a model file: other learning rates, embedding sizes and depths of its network, for
// `cistern tune`.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "common/base/status.h"
#include "worker/model/config/grammar.h"

namespace cistern::model {

// What can be varied. dim: floats of an embedding's vectors, without a weight of the first order
// that shares the row (as in DeepFM's model files). depth: hidden layers of the last network, which
// are an InnerProduct and at least one activation, or layers of an MLP; a gate is no hidden
// layer. nullopt: the model has none, or none that can be varied (an HSTU model's vectors).
struct ModelKnobs {
  double learning_rate = 0;  // of the dense weights
  std::optional<uint32_t> dim, depth;
  bool operator==(const ModelKnobs&) const = default;
};

// model: a model file without errors (ReadModelFile), whose layers have these types.
ModelKnobs KnobsOf(const nlohmann::ordered_json& model, const std::vector<LayerGrammar>& types);

// The model with these knobs; absent ones are not changed. All learning rates are multiplied by the
// same factor. A new dim resizes every embedding of the old one, and the layers that repeat it
// (Reshape, Slice, FmOrder2, Multiply, and the network beside an Interaction). A new depth repeats
// the last hidden layer, or leaves out the last ones.
//
// The outputs of an MLP of another depth lose their names but for the last. The result can have
// layers that do not fit each other, where a model repeats a size in a way that is not known here:
// check it with Summarize. kInvalidArgument: a knob that the model does not have.
absl::StatusOr<nlohmann::ordered_json> WithKnobs(nlohmann::ordered_json model,
                                                 const ModelKnobs& knobs,
                                                 const std::vector<LayerGrammar>& types);

}  // namespace cistern::model
