// ControlService::Stats: tables, memory and counters of a server.
#include "common/metrics/process_figures.h"
#include "server/service/control_service.h"

namespace cistern::server {
namespace {

absl::Status FillTable(const SparseTable& table, bool digest, v1::TableStats* stats) {
  const SparseTable::Counts counts = table.counts();
  stats->set_name(table.spec().name());
  stats->set_rows(counts.rows);
  stats->set_embedx_rows(counts.embedx_rows);
  stats->set_value_bytes(counts.value_bytes);
  stats->set_memory_bytes(counts.memory_bytes);
  if (table.tiered()) {
    stats->set_hot_rows(counts.hot_rows);
    stats->set_cold_index_bytes(counts.cold_index_bytes);
  }
  stats->set_evicted_rows(table.removed().evicted);
  stats->set_expired_rows(table.removed().expired);
  if (!digest) return absl::OkStatus();
  CISTERN_ASSIGN_OR_RETURN(const uint64_t sum, table.Digest());
  stats->set_digest(sum);
  return absl::OkStatus();
}

void FillTable(const DenseTable& table, bool digest, v1::TableStats* stats) {
  const uint64_t rows = table.written() ? table.range().end - table.range().begin : 0;
  const uint64_t bytes = rows * table.columns() * sizeof(float);
  stats->set_name(table.spec().name());
  stats->set_rows(rows);
  stats->set_value_bytes(bytes);
  stats->set_memory_bytes(bytes);
  if (digest) stats->set_digest(table.Digest());
}

absl::Status FillTables(const TableStore& store, bool digest, v1::StatsReply* reply) {
  for (const auto& table : store.sparse_tables()) {
    CISTERN_RETURN_IF_ERROR(FillTable(*table, digest, reply->add_tables()));
  }
  for (const auto& table : store.dense_tables()) {
    FillTable(*table, digest, reply->add_dense_tables());
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ControlService::Stats(const v1::StatsRequest& request, v1::StatsReply* reply) {
  // Reads only, so a caller of any term and any model may ask.
  CISTERN_RETURN_IF_ERROR(state_->guard.CheckPlace(request.identity()));
  reply->set_rank(state_->rank);
  reply->set_committed_pass(state_->stage.committed());
  reply->set_open_pass(state_->stage.open());
  reply->set_staged_bytes(state_->stage.staged_bytes());
  reply->set_resident_bytes(ReadProcessFigures().resident_bytes);
  reply->set_uptime_seconds(
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count());
  reply->set_pulled_keys(state_->counters.pulled_keys());
  reply->set_pushed_keys(state_->counters.pushed_keys());
  if (state_->stage.durable() != nullptr) {
    reply->set_commit(state_->stage.durable()->commit());
    reply->set_state_bytes(state_->stage.durable()->state_bytes());
    reply->set_memory_limit_bytes(state_->stage.durable()->memory_limit_bytes());
    const std::optional<uint64_t> copied = state_->stage.durable()->copied_commit();
    if (copied.has_value()) reply->set_copied_commit(*copied);
  }
  if (request.digest()) {
    // Reads every row, so no commit may run meanwhile; only other long jobs wait for it.
    absl::MutexLock job(&state_->job_mutex);
    reply->set_committed_pass(state_->stage.committed());
    return FillTables(state_->store, true, reply);
  }
  absl::ReaderMutexLock lock(&state_->tables_mutex);
  CISTERN_RETURN_IF_ERROR(state_->CheckTables());
  return FillTables(state_->store, false, reply);
}

}  // namespace cistern::server
