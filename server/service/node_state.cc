#include "server/service/node_state.h"

#include "common/base/log.h"

namespace cistern::server {

void NodeState::FillCache(absl::string_view reason) {
  if (!cache.is_on()) return;
  const uint64_t rows = cache.Fill(store, pool);
  LogInfo(absl::StrCat("the memory cache holds the ", rows, " most shown rows as of ", reason));
}

absl::Status NodeState::Replace(const std::function<absl::Status()>& check,
                                const std::function<absl::Status()>& replace) {
  // Clears `replacing` at the end of a scope, even if memory runs out inside.
  class Scope {
   public:
    explicit Scope(NodeState* state) : state_(state) {}
    ~Scope() {
      absl::MutexLock lock(&state_->tables_mutex);
      state_->replacing = false;
    }

   private:
    NodeState* const state_;
  };
  {
    absl::MutexLock lock(&tables_mutex);
    CISTERN_RETURN_IF_ERROR(check());
    replacing = true;
  }
  const Scope scope(this);
  return replace();
}

}  // namespace cistern::server
