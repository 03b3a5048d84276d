#include "common/value/first_weights.h"

#include "proto/schema.pb.h"

namespace cistern {

FirstWeights MakeFirstWeights(const v1::Initializer& initializer, uint64_t seed) {
  FirstWeights first;
  switch (initializer.kind()) {
    case v1::Initializer::UNIFORM:
      first.kind = FirstWeights::Kind::kUniform;
      break;
    case v1::Initializer::NORMAL:
      first.kind = FirstWeights::Kind::kNormal;
      break;
    case v1::Initializer::SLOT_UNIFORM:
      first.kind = FirstWeights::Kind::kSlotUniform;
      break;
    default:
      break;
  }
  first.range = initializer.range();
  first.seed = seed;
  first.slot_sizes = initializer.slot_sizes().sizes().data();
  first.slot_num = static_cast<uint32_t>(initializer.slot_sizes().sizes().size());
  return first;
}

}  // namespace cistern
