#include "worker/model/config/trained_constants.h"

#include "common/value/schema.h"

namespace cistern::model {
namespace {

// Whether rows of both tables have the same form and give the same predictions.
bool PredictAlike(const v1::TableSpec& a, const v1::TableSpec& b) {
  return a.name() == b.name() && a.accessor() == b.accessor() && a.dim() == b.dim() &&
         a.rule().kind() == b.rule().kind() && a.rule().missed() == b.rule().missed() &&
         a.ctr().day_id_decay() == b.ctr().day_id_decay();
}

}  // namespace

void TakeTrainedConstants(const v1::Schema& trained, ModelConfig* config) {
  for (EmbeddingConfig& embedding : config->embeddings) {
    const v1::TableSpec* const table = FindTable(trained.tables(), embedding.spec.name());
    if (table != nullptr && PredictAlike(embedding.spec, *table)) embedding.spec = *table;
  }
}

}  // namespace cistern::model
