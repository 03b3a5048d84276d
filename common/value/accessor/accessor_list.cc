// The list of accessors: one line each.
#include "common/value/accessor.h"
#include "common/value/accessor/ctr_accessor.h"
#include "common/value/accessor/embedding_accessor.h"

namespace cistern {

AccessorList Accessors() {
  static const EmbeddingAccessor embedding;
  static const CtrAccessor ctr;
  static const Accessor* const all[] = {&embedding, &ctr};
  return all;
}

}  // namespace cistern
