// cistern ckpt diff: compares the rows of two commits or saved models.
#include <algorithm>
#include <memory>

#include "absl/strings/str_join.h"
#include "app/state/saved_place.h"
#include "app/state/saved_rows.h"
#include "cli/command/ckpt_commands.h"
#include "cli/terminal/activity.h"
#include "cli/terminal/aligned_text.h"
#include "cli/terminal/exit_code.h"
#include "common/value/schema.h"
#include "server/table/table_diff.h"

namespace cistern {
namespace {

// Two states with equal shard_num are compared in this many steps, to bound the rows in memory.
constexpr uint32_t kSteps = 16;

struct NamedDifference {
  std::string name, kind;
  TableDifference rows;
  std::string not_compared;  // the reason; empty: the tables were compared
};

// The differences found so far, by table: sparse tables before dense ones, in the order of A and
// then of B.
class Comparison {
 public:
  explicit Comparison(size_t examples) : examples_(examples) {}

  void Add(const TableStore& a, const TableStore& b) {
    for (const auto& table : a.sparse_tables()) {
      NamedDifference& named = Find(table->spec().name(), "sparse");
      const auto other = FindTable(b.sparse_tables(), table->spec().name());
      if (other == nullptr) {
        named.not_compared = "only A has it";
        named.rows.rows_a += table->counts().rows;
        named.rows.digest_a += *table->Digest();
        continue;
      }
      Note(DiffTables(*table, *other, examples_, &named.rows), &named);
    }
    for (const auto& table : b.sparse_tables()) {
      if (FindTable(a.sparse_tables(), table->spec().name()) != nullptr) continue;
      NamedDifference& named = Find(table->spec().name(), "sparse");
      named.not_compared = "only B has it";
      named.rows.rows_b += table->counts().rows;
      named.rows.digest_b += *table->Digest();
    }
    AddDense(a, b);
  }
  const std::vector<NamedDifference>& tables() const { return tables_; }
  bool same() const {
    return std::all_of(tables_.begin(), tables_.end(), [](const NamedDifference& table) {
      return table.not_compared.empty() && table.rows.same();
    });
  }

 private:
  void AddDense(const TableStore& a, const TableStore& b) {
    for (const auto& table : a.dense_tables()) {
      NamedDifference& named = Find(table->spec().name(), "dense");
      const auto other = FindTable(b.dense_tables(), table->spec().name());
      if (other == nullptr) {
        named.not_compared = "only A has it";
        named.rows.digest_a += table->Digest();
        continue;
      }
      Note(DiffDenseTables(*table, *other, examples_, &named.rows), &named);
    }
    for (const auto& table : b.dense_tables()) {
      if (FindTable(a.dense_tables(), table->spec().name()) != nullptr) continue;
      NamedDifference& named = Find(table->spec().name(), "dense");
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
  NamedDifference& Find(const std::string& name, const std::string& kind) {
    for (NamedDifference& table : tables_) {
      if (table.name == name && table.kind == kind) return table;
    }
    tables_.push_back({name, kind, {}, ""});
    return tables_.back();
  }
  static void Note(const absl::Status& compared, NamedDifference* named) {
    if (!compared.ok()) named->not_compared = std::string(compared.message());
  }

  const size_t examples_;
  std::vector<NamedDifference> tables_;
};

absl::Status ReadStep(const app::SavedRows& a, const app::SavedRows& b, uint32_t step,
                      uint32_t steps, ThreadPool& pool, Comparison* comparison) {
  CISTERN_ASSIGN_OR_RETURN(const ShardMap map_a, ShardMap::Create(a.shard_num(), steps));
  CISTERN_ASSIGN_OR_RETURN(const ShardMap map_b, ShardMap::Create(b.shard_num(), steps));
  TableStore store_a(map_a, step), store_b(map_b, step);
  CISTERN_RETURN_IF_ERROR(a.Read(store_a, pool));
  CISTERN_RETURN_IF_ERROR(b.Read(store_b, pool));
  comparison->Add(store_a, store_b);
  return absl::OkStatus();
}

void AddExamples(const char* kind, const std::vector<Key>& keys, size_t limit,
                 nlohmann::ordered_json* json, std::string* text) {
  const std::vector<Key> shown(keys.begin(), keys.begin() + std::min(keys.size(), limit));
  (*json)[absl::StrCat(kind, "_keys")] = shown;
  if (!shown.empty()) absl::StrAppend(text, "  ", kind, ": ", absl::StrJoin(shown, " "), "\n");
}

Report ReportOf(const app::SavedRows& a, const app::SavedRows& b, const Comparison& comparison,
                size_t examples) {
  Report report;
  const std::string difference = SchemaDifference(a.schema(), b.schema());
  report.json["a"] = {{"name", a.name()}, {"pass", a.version().pass}};
  report.json["b"] = {{"name", b.name()}, {"pass", b.version().pass}};
  report.json["schema_difference"] = difference;
  report.json["tables"] = nlohmann::ordered_json::array();
  std::vector<std::vector<std::string>> rows = {
      {"TABLE", "ROWS A", "ROWS B", "ADDED", "REMOVED", "CHANGED", "DIGEST A", "DIGEST B"}};
  std::string keys;
  for (const NamedDifference& table : comparison.tables()) {
    const TableDifference& found = table.rows;
    nlohmann::ordered_json json;
    json["name"] = table.name;
    json["kind"] = table.kind;
    json["rows_a"] = found.rows_a;
    json["rows_b"] = found.rows_b;
    json["digest_a"] = app::DigestText(found.digest_a);
    json["digest_b"] = app::DigestText(found.digest_b);
    const bool compared = table.not_compared.empty();
    if (compared) {
      json["added"] = found.added;
      json["removed"] = found.removed;
      json["changed"] = found.changed;
    } else {
      json["not_compared"] = table.not_compared;
    }
    std::string lines;
    AddExamples("added", found.added_keys, examples, &json, &lines);
    AddExamples("removed", found.removed_keys, examples, &json, &lines);
    AddExamples("changed", found.changed_keys, examples, &json, &lines);
    if (!compared) absl::StrAppend(&lines, "  not compared: ", table.not_compared, "\n");
    if (!lines.empty()) absl::StrAppend(&keys, table.name, "\n", lines);
    const auto count = [&](uint64_t n) { return compared ? absl::StrCat(n) : "-"; };
    rows.push_back({table.name, absl::StrCat(found.rows_a), absl::StrCat(found.rows_b),
                    count(found.added), count(found.removed), count(found.changed),
                    app::DigestText(found.digest_a), app::DigestText(found.digest_b)});
    report.json["tables"].push_back(json);
  }
  const bool same = comparison.same() && difference.empty();
  report.json["same"] = same;
  report.text = absl::StrCat("A  ", a.name(), ", pass ", a.version().pass, "\nB  ", b.name(),
                             ", pass ", b.version().pass, "\n",
                             difference.empty() ? "" : absl::StrCat("schema: ", difference, "\n"),
                             AlignedText(rows), keys);
  // A difference is a result and needs no fix; the status only sets the exit code.
  if (!same) report.outcome = absl::UnknownError("A and B differ");
  return report;
}

}  // namespace

absl::StatusOr<Report> RunCkptDiff(const CkptDiffFlags& flags, Console* console) {
  LocalFileSystem files;
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<app::SavedRows> a,
                           app::SavedRows::Open(files, ParseRowsPlace(flags.a)));
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<app::SavedRows> b,
                           app::SavedRows::Open(files, ParseRowsPlace(flags.b)));
  // If shard_num differs, a step of A and a step of B hold different keys: compare in one step.
  const uint32_t steps = a->shard_num() == b->shard_num() ? std::min(a->shard_num(), kSteps) : 1;
  const size_t examples = flags.rows;
  ThreadPool pool(app::ThreadsOf(flags.threads));
  Comparison comparison(examples);
  Activity activity(console, "comparing", "parts", steps);
  for (uint32_t step = 0; step < steps; ++step, activity.Done()) {
    CISTERN_RETURN_IF_ERROR(ReadStep(*a, *b, step, steps, pool, &comparison));
  }
  return ReportOf(*a, *b, comparison, examples);
}

void AddCkptDiffCommand(Command& ckpt) {
  auto flags = std::make_shared<CkptDiffFlags>();
  Command& command = ckpt.Add("diff", "Compares the rows of two commits or saved models.",
                              "cistern ckpt diff saved@11 saved@12");
  command.Argument(
      "A", &flags->a,
      {"STATE[@COMMIT]|DIR",
       "A data_dir or state folder, with a commit (default: the newest); or the folder "
       "of a saved model.",
       "saved@11", kRequired});
  command.Argument(
      "B", &flags->b,
      {"STATE[@COMMIT]|DIR", "What to compare A with; like A.", "saved/monday", kRequired});
  command.Flag("--rows", &flags->rows,
               {"INT", "Number of example keys to print per kind of difference.", "--rows 20"});
  command.Flag("--threads", &flags->threads, ThreadsText("Number of threads"));
  command.Footer(
      "Rows are compared bit by bit; ADDED counts the rows that only B has. Exit code 0: A and\n"
      "B are equal; 1: they differ; 5: one of them is corrupt. Memory holds a sixteenth of the\n"
      "rows of both at a time, or all rows if their shard_num differs.");
  command.Does([flags](Console& console) { return RunCkptDiff(*flags, &console); });
}

}  // namespace cistern
