#include "server/service/node_state.h"

#include "common/base/log.h"

namespace cistern::server {

void NodeState::FillCache(absl::string_view reason) {
  if (!cache.is_on()) return;
  const uint64_t rows = cache.Fill(store, pool);
  LogInfo(absl::StrCat("the memory cache holds the ", rows, " most shown rows as of ", reason));
}

}  // namespace cistern::server
