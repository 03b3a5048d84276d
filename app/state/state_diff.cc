#include "app/state/state_diff.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "app/state/saved_place.h"
#include "app/state/saved_rows.h"
#include "common/value/schema.h"

namespace cistern::app {
namespace {

// Two states with equal shard_num are compared in this many steps, to bound the rows in memory.
constexpr uint32_t kSteps = 16;

// The differences found so far, by table: sparse tables before dense ones, in the order of A and
// then of B.
class Comparison {
 public:
  explicit Comparison(size_t examples) : examples_(examples) {}

  void Add(const server::TableStore& a, const server::TableStore& b) {
    for (const auto& table : a.sparse_tables()) {
      DiffResult::Table& named = Find(table->spec().name(), "sparse");
      const auto other = FindTable(b.sparse_tables(), table->spec().name());
      if (other == nullptr) {
        named.not_compared = "only A has it";
        named.rows.rows_a += table->counts().rows;
        named.rows.digest_a += *table->Digest();
        continue;
      }
      Note(server::DiffTables(*table, *other, examples_, &named.rows), &named);
    }
    for (const auto& table : b.sparse_tables()) {
      if (FindTable(a.sparse_tables(), table->spec().name()) != nullptr) continue;
      DiffResult::Table& named = Find(table->spec().name(), "sparse");
      named.not_compared = "only B has it";
      named.rows.rows_b += table->counts().rows;
      named.rows.digest_b += *table->Digest();
    }
    AddDense(a, b);
  }
  std::vector<DiffResult::Table> TakeTables() { return std::move(tables_); }

 private:
  void AddDense(const server::TableStore& a, const server::TableStore& b) {
    for (const auto& table : a.dense_tables()) {
      DiffResult::Table& named = Find(table->spec().name(), "dense");
      const auto other = FindTable(b.dense_tables(), table->spec().name());
      if (other == nullptr) {
        named.not_compared = "only A has it";
        named.rows.digest_a += table->Digest();
        continue;
      }
      Note(server::DiffDenseTables(*table, *other, examples_, &named.rows), &named);
    }
    for (const auto& table : b.dense_tables()) {
      if (FindTable(a.dense_tables(), table->spec().name()) != nullptr) continue;
      DiffResult::Table& named = Find(table->spec().name(), "dense");
      named.not_compared = "only B has it";
      named.rows.digest_b += table->Digest();
    }
  }

  template <typename Table>
  static const Table* FindTable(const std::vector<std::unique_ptr<Table>>& tables,
                                const std::string& name) {
    for (const auto& table : tables) {
      if (table->spec().name() == name) return table.get();
    }
    return nullptr;
  }
  DiffResult::Table& Find(const std::string& name, const std::string& kind) {
    for (DiffResult::Table& table : tables_) {
      if (table.name == name && table.kind == kind) return table;
    }
    tables_.push_back({name, kind, {}, ""});
    return tables_.back();
  }
  static void Note(const absl::Status& compared, DiffResult::Table* named) {
    if (!compared.ok()) named->not_compared = std::string(compared.message());
  }

  const size_t examples_;
  std::vector<DiffResult::Table> tables_;
};

absl::Status ReadStep(const SavedRows& a, const SavedRows& b, uint32_t step, uint32_t steps,
                      ThreadPool& pool, Comparison* comparison) {
  CISTERN_ASSIGN_OR_RETURN(const ShardMap map_a, ShardMap::Create(a.shard_num(), steps));
  CISTERN_ASSIGN_OR_RETURN(const ShardMap map_b, ShardMap::Create(b.shard_num(), steps));
  server::TableStore store_a(map_a, step), store_b(map_b, step);
  CISTERN_RETURN_IF_ERROR(a.Read(store_a, pool));
  CISTERN_RETURN_IF_ERROR(b.Read(store_b, pool));
  comparison->Add(store_a, store_b);
  return absl::OkStatus();
}

}  // namespace

bool DiffResult::same() const {
  return schema_difference.empty() &&
         std::all_of(tables.begin(), tables.end(), [](const Table& table) {
           return table.not_compared.empty() && table.rows.same();
         });
}

absl::StatusOr<DiffResult> Diff(const DiffOptions& options, const JobCalls& calls) {
  LocalFileSystem files;
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<SavedRows> a,
                           SavedRows::Open(files, ParseRowsPlace(options.a)));
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<SavedRows> b,
                           SavedRows::Open(files, ParseRowsPlace(options.b)));
  // If shard_num differs, a step of A and a step of B hold different keys: compare in one step.
  const uint32_t steps = a->shard_num() == b->shard_num() ? std::min(a->shard_num(), kSteps) : 1;
  ThreadPool pool(ThreadsOf(options.threads));
  Comparison comparison(options.rows);
  AmountCounter counter(calls, "comparing", "parts");
  counter.Expect(steps);
  for (uint32_t step = 0; step < steps; ++step, counter.Done()) {
    CISTERN_RETURN_IF_ERROR(calls.CheckStop());
    CISTERN_RETURN_IF_ERROR(ReadStep(*a, *b, step, steps, pool, &comparison));
  }
  return DiffResult{{a->name(), a->version().pass},
                    {b->name(), b->version().pass},
                    SchemaDifference(a->schema(), b->schema()),
                    comparison.TakeTables()};
}

nlohmann::ordered_json JsonOf(const DiffResult& result) {
  nlohmann::ordered_json json;
  json["a"] = {{"name", result.a.name}, {"pass", result.a.pass}};
  json["b"] = {{"name", result.b.name}, {"pass", result.b.pass}};
  json["schema_difference"] = result.schema_difference;
  json["tables"] = nlohmann::ordered_json::array();
  for (const DiffResult::Table& table : result.tables) {
    const server::TableDifference& found = table.rows;
    nlohmann::ordered_json one;
    one["name"] = table.name;
    one["kind"] = table.kind;
    one["rows_a"] = found.rows_a;
    one["rows_b"] = found.rows_b;
    one["digest_a"] = DigestText(found.digest_a);
    one["digest_b"] = DigestText(found.digest_b);
    if (table.not_compared.empty()) {
      one["added"] = found.added;
      one["removed"] = found.removed;
      one["changed"] = found.changed;
    } else {
      one["not_compared"] = table.not_compared;
    }
    one["added_keys"] = found.added_keys;
    one["removed_keys"] = found.removed_keys;
    one["changed_keys"] = found.changed_keys;
    json["tables"].push_back(std::move(one));
  }
  json["same"] = result.same();
  return json;
}

}  // namespace cistern::app
