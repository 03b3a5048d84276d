// Readers that convert checked JSON (grammar_check.h) into the structs of model_config.h, one per
// object. A value that goes to a member as it is has its place in the grammar (key_binding.h).
//
// A reader relies on the grammar check: keys with a default are present, types and bounds hold. It
// checks only what a single key cannot express: combinations, references and names.
#pragma once

#include <string>
#include <vector>

#include "common/base/status.h"
#include "worker/model/config/grammar.h"
#include "worker/model/config/json_document.h"
#include "worker/model/config/model_config.h"

namespace cistern::model {

using Notes = std::vector<std::string>;

// The seed of a run whose solver.seed is 0 or absent.
inline constexpr uint64_t kDefaultSeed = 20201123;

absl::Status ReadSolver(const Json& json, SolverConfig* solver, Notes* notes);

// Reads solver.mixed_precision, cistern.activations and cistern.loss_scale.
absl::StatusOr<PrecisionConfig> ReadPrecision(const Json& solver, const Json& cistern);

// Reads cistern.gauc_slot, which names a sparse input of `data`.
absl::StatusOr<GroupSlot> ReadGroupSlot(const Json& json, const DataConfig& data);

// parent: the top-level optimizer, from which an embedding's optimizer inherits its schedule; null
// at the top level.
absl::StatusOr<OptimizerConfig> ReadOptimizer(const Json& json, const std::string& path,
                                              const OptimizerConfig* parent, Notes* notes);

// Reads cistern.embeddings.NAME.optimizer, whose path is `path`.
absl::StatusOr<OptimizerConfig> ReadRowRule(const Json& json, const std::string& path,
                                            const OptimizerConfig& parent);

absl::Status ReadData(const Json& json, const std::string& path, DataConfig* data, Notes* notes);

// Marks the inputs with these tops (cistern.key_weights).
absl::Status MarkKeyWeights(const std::vector<std::string>& inputs, DataConfig* data);

// Checks cistern.columns against the shape of `data`.
absl::Status CheckColumns(const DataConfig& data, const data::TarColumns& columns, Notes* notes);

// torch_init: rows start from N(0, 1) by default. extras: the object cistern.embeddings.NAME of
// this embedding, or null.
absl::StatusOr<EmbeddingConfig> ReadEmbedding(const Json& json, const std::string& path,
                                              const DataConfig& data,
                                              const OptimizerConfig& default_optimizer,
                                              uint64_t seed, bool torch_init, const Json* extras,
                                              Notes* notes);

// type: of a dense layer or a loss.
absl::StatusOr<LayerConfig> ReadLayer(const LayerGrammar& type, const Json& json,
                                      const std::string& path, Notes* notes);

inline absl::Status ConfigError(const std::string& path, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", what));
}

// Returns the name of a layer: "name", or its first top if it has none.
std::string LayerName(const Json& json);

}  // namespace cistern::model
