#include "server/service/server_metrics.h"

#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "common/base/version.h"
#include "common/metrics/metric_text.h"
#include "common/metrics/process_figures.h"

namespace cistern::server {
namespace {

struct TableFigures {
  std::string name;
  SparseTable::Counts counts;
  uint64_t cold_reads = 0;
  bool tiered = false;
  RemovedRows removed;
};

std::vector<TableFigures> ReadTables(NodeState& state)
    ABSL_SHARED_LOCKS_REQUIRED(state.tables_mutex) {
  std::vector<TableFigures> tables;
  if (!state.CheckTables().ok()) return tables;
  for (const auto& table : state.store.sparse_tables()) {
    tables.push_back({table->spec().name(), table->counts(), table->cold_reads(), table->tiered(),
                      table->removed()});
  }
  return tables;
}

// Empty while the lock cannot be had: a claim may wait for a commit that is writing its files.
std::vector<TableFigures> TryReadTables(NodeState& state) {
  if (!state.tables_mutex.ReaderTryLock()) return {};
  const absl::Cleanup unlock = [&state] { state.tables_mutex.ReaderUnlock(); };
  return ReadTables(state);
}

// A gauge with one sample for each table.
template <class Figure>
void AddTables(absl::string_view name, absl::string_view help,
               const std::vector<TableFigures>& tables, const Figure& figure, MetricText* text) {
  text->Family(name, MetricType::kGauge, help);
  for (const TableFigures& table : tables) text->Sample({{"table", table.name}}, figure(table));
}

void AddRows(const std::vector<TableFigures>& tables, MetricText* text) {
  AddTables(
      "rows", "Rows of this server, in memory or in files.", tables,
      [](const TableFigures& table) { return table.counts.rows; }, text);
  AddTables(
      "embedx_rows", "Rows in memory whose value includes embedx.", tables,
      [](const TableFigures& table) { return table.counts.embedx_rows; }, text);
  AddTables(
      "hot_rows", "Rows in memory: all of them, unless the server has a memory limit.", tables,
      [](const TableFigures& table) {
        return table.tiered ? table.counts.hot_rows : table.counts.rows;
      },
      text);
  AddTables(
      "value_bytes", "Bytes of the values in memory, without keys.", tables,
      [](const TableFigures& table) { return table.counts.value_bytes; }, text);
  AddTables(
      "table_memory_bytes", "Memory of rows and of what finds them.", tables,
      [](const TableFigures& table) { return table.counts.memory_bytes; }, text);
  AddTables(
      "cold_index_bytes", "Memory of what finds the rows in files.", tables,
      [](const TableFigures& table) { return table.counts.cold_index_bytes; }, text);
  text->Family("cold_reads_total", MetricType::kCounter,
               "Rows that pulls have looked for in files, because they were not in memory.");
  for (const TableFigures& table : tables) {
    text->Sample({{"table", table.name}}, table.cold_reads);
  }
  text->Family("evicted_rows_total", MetricType::kCounter,
               "Rows that commits have removed because their table was above max_rows.");
  for (const TableFigures& table : tables) {
    text->Sample({{"table", table.name}}, table.removed.evicted);
  }
  text->Family("expired_rows_total", MetricType::kCounter,
               "Rows that commits have removed because of their table's expire_passes or "
               "expire_days.");
  for (const TableFigures& table : tables) {
    text->Sample({{"table", table.name}}, table.removed.expired);
  }
}

void AddCalls(const ServerCounters& counters, MetricText* text) {
  text->Counter("pulled_keys_total", "Keys of successful pulls.", counters.pulled_keys());
  text->Counter("pulled_bytes_total", "Bytes of keys and values of successful pulls.",
                counters.pulled_bytes());
  text->Counter("pushed_keys_total", "Keys of successful pushes.", counters.pushed_keys());
  text->Counter("pushed_bytes_total", "Bytes of keys and values of successful pushes.",
                counters.pushed_bytes());
  text->Family("call_errors_total", MetricType::kCounter, "Calls that returned an error, by code.");
  for (size_t i = 1; i < ServerCounters::kCodes; ++i) {
    const auto code = static_cast<absl::StatusCode>(i);
    text->Sample({{"code", absl::StatusCodeToString(code)}}, counters.errors(code));
  }
  text->Family("call_seconds", MetricType::kHistogram,
               "Seconds of a call in its handler, without the network.");
  for (size_t i = 0; i < kServerMethodNum; ++i) {
    const auto method = static_cast<ServerMethod>(i);
    text->Sample({{"method", NameOf(method)}}, counters.seconds(method));
  }
}

void AddPasses(const NodeState& state, MetricText* text) {
  const CommitState& stage = state.stage;
  text->Gauge("committed_pass", "The last committed pass; 0: none.", stage.committed());
  text->Gauge("open_pass", "The pass that is being pushed; 0: none.", stage.open());
  text->Counter("commits_total", "Passes committed since the start.", state.counters.commits());
  text->Gauge("last_commit_time_seconds", "Unix time of the last commit; 0: none since the start.",
              state.counters.last_commit_seconds());
  text->Gauge("staged_bytes", "Memory of the pushes of the open pass.", stage.staged_bytes());
  text->Gauge("staged_limit_bytes", "Above it pushes are refused.", stage.staged_limit_bytes());
  const DurableState* const durable = stage.durable();
  text->Gauge("durable", "1 if commits survive this process.", durable != nullptr ? 1 : 0);
  text->Gauge("commit", "The newest durable commit; 0: none.",
              durable == nullptr ? 0 : durable->commit());
  const std::optional<uint64_t> copied =
      durable == nullptr ? std::nullopt : durable->copied_commit();
  if (copied.has_value()) {
    text->Gauge("copied_commit", "The newest commit that is whole in the copy of the state.",
                *copied);
  }
  text->Gauge("state_bytes", "Size of the files that this server recovers from.",
              durable == nullptr ? 0 : durable->state_bytes());
  text->Gauge("memory_limit_bytes", "Memory for rows and pushes; 0: every row is in memory.",
              durable == nullptr ? 0 : durable->memory_limit_bytes());
  text->Gauge("dirty", "1 while memory holds changes in place that no commit has.",
              durable != nullptr && durable->dirty() ? 1 : 0);
}

}  // namespace

std::string ServerMetricsText(NodeState& state) {
  MetricText text("cistern_server_");
  text.Family("info", MetricType::kGauge, "The place of this server and the version of Cistern.");
  text.Sample({{"rank", absl::StrCat(state.rank)},
               {"servers", absl::StrCat(state.store.shard_map().server_num())},
               {"cluster", state.guard.cluster()},
               {"version", kVersion}},
              1);
  text.Family("writer_info", MetricType::kGauge, "The writer with the newest claim.");
  const std::string writer = state.lease.writer();
  if (!writer.empty()) text.Sample({{"writer", writer}}, 1);
  AddPasses(state, &text);
  AddCalls(state.counters, &text);
  AddRows(TryReadTables(state), &text);
  AddProcessFigures(&text);
  return text.Take();
}

}  // namespace cistern::server
