// A model, its recipe and its data, made from a table of text.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "app/data/inspect_table.h"
#include "app/data/table_options.h"
#include "app/job_calls.h"
#include "common/base/status.h"

namespace cistern::app {

// The counts of values that are too rare for keys of their own: more data may make them frequent.
inline constexpr char kRareFile[] = "rare.txt";

// The data set of TableOptions::final_test, below OUT/data.
inline constexpr char kFinalTest[] = "final";

// Columns of a later file that the tables of a run had not: its model cannot read them.
struct OtherColumns {
  std::string file;
  std::vector<std::string> columns;
  std::vector<std::string> earlier;  // the files that the run was given before
};

// What is called while tables become data.
struct TableCalls : JobCalls {
  std::function<void(const InspectedTable& table)> inspected;
  std::function<void(const OtherColumns& others)> other_columns;
};

// Writes OUT/model.json, OUT/recipe.json with its vocabulary, and OUT/rare.txt. The model trains on
// OUT/data/train and evaluates on OUT/data/test. kInvalidArgument, with a fix: the network is too
// large; errors of FitRecipe.
absl::Status WriteTableModel(const InspectedTable& table, const TableOptions& options,
                             const std::string& out, const JobCalls& calls);

struct InitOptions {
  std::string table;  // files between commas, as JoinTables makes it
  TableOptions how;
  std::string out = ".";
  bool overwrite = false;  // of a model file and a recipe in `out`
};

// InspectTable and WriteTableModel. kInvalidArgument, with a fix: `out` holds a model or recipe.
absl::StatusOr<InspectedTable> InitModel(const InitOptions& options, const JobCalls& calls);

struct TableModel {
  std::string model;                  // the path of the model file
  std::vector<std::string> warnings;  // what is odd about the two parts of the data
};

// Inspects the table, writes model and recipe, and converts the table to OUT/data/train and
// OUT/data/test, and final_test() to OUT/data/final. Errors of InspectTable, WriteTableModel and
// Convert; kInvalidArgument, with a fix: fewer than 100 rows, or a part of one class.
absl::StatusOr<TableModel> MakeTableModel(const std::string& path, const TableOptions& options,
                                          const std::string& out, const TableCalls& calls);

}  // namespace cistern::app
