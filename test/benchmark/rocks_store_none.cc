#include "test/benchmark/rocks_store.h"

namespace cistern {

std::unique_ptr<RocksStore> RocksStore::Open(const std::string&, size_t, uint64_t, int) {
  return nullptr;
}

}  // namespace cistern
