// From checked JSON (grammar_check.h) to the structs of model_config.h, one reader an object.
//
// Every reader may rely on the check: keys with a default are there, types and bounds hold. What is
// left to a reader is what no single key can say: combinations, references, names.
#pragma once

#include <string>
#include <vector>

#include "common/base/status.h"
#include "worker/model/config/json_document.h"
#include "worker/model/config/model_config.h"

namespace cistern {

using Notes = std::vector<std::string>;

// The seed of a run whose file says 0 or nothing.
inline constexpr uint64_t kDefaultSeed = 20201123;

absl::StatusOr<SolverConfig> ReadSolver(const Json& json, Notes* notes);

CisternConfig ReadCistern(const Json& json);

// solver.mixed_precision, cistern.activations and cistern.loss_scale.
absl::StatusOr<PrecisionConfig> ReadPrecision(const Json& solver, const Json& cistern);

// cistern.gauc_slot, which names a sparse input of `data`.
absl::StatusOr<GroupSlot> ReadGroupSlot(const Json& json, const DataConfig& data);

// parent: the top-level optimizer, whose schedule an embedding's inherits; null at top level.
absl::StatusOr<OptimizerConfig> ReadOptimizer(const Json& json, const std::string& path,
                                              const OptimizerConfig* parent, Notes* notes);

// cistern.embeddings.NAME.optimizer.
OptimizerConfig ReadRowRule(const Json& json, const OptimizerConfig& parent);

absl::StatusOr<DataConfig> ReadData(const Json& json, const std::string& path, Notes* notes);

// extras: cistern.embeddings.NAME of this embedding, or null.
absl::StatusOr<EmbeddingConfig> ReadEmbedding(const Json& json, const std::string& path,
                                              const DataConfig& data,
                                              const OptimizerConfig& default_optimizer,
                                              uint64_t seed, const Json* extras, Notes* notes);

absl::StatusOr<LayerConfig> ReadLayer(const Json& json, const std::string& path, Notes* notes);

inline absl::Status ConfigError(const std::string& path, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", what));
}

// The name of a layer: "name", or its first top where it has none.
std::string LayerName(const Json& json);

}  // namespace cistern
