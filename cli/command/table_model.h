// A model from a table: what `cistern init` and `cistern train` do with a CSV or TSV file in place
// of a model file.
#pragma once

#include <string>
#include <vector>

#include "cli/terminal/command_line.h"
#include "cli/terminal/report.h"
#include "worker/data/prepare/table_plan.h"
#include "worker/data/prepare/table_profile.h"

namespace cistern {

struct TableModelFlags {
  TableWishes wishes;
  std::string model = "deepfm";
  std::string test;  // train: the evaluation data
};

// Adds --label, --positive, --dense, --sparse, --ignore and --model.
void AddTableModelFlags(Command& command, TableModelFlags* flags);
// The first of these flags, and of --test, that was given; "" for none.
std::string GivenTableFlag(const TableModelFlags& flags);

// Whether a file is a table and not a model file, by its name (*.csv, *.tsv, compressed or not;
// *.parquet), or a folder of such files.
bool IsTable(const std::string& path);

// What was found in a table.
struct InspectedTable {
  TableProfile profile;
  TablePlan plan;
};

// Reads the table once. kInvalidArgument, kDataLoss with a fix.
absl::StatusOr<InspectedTable> InspectTable(const std::string& path, const TableModelFlags& flags,
                                            Console& console);
// A row per column: type, distinct and missing values, role.
std::string TextOf(const InspectedTable& table);
nlohmann::ordered_json JsonOf(const InspectedTable& table);

// Writes OUT/model.json and OUT/recipe.json, with its vocabulary. evaluates: the model file names
// OUT/data/test.
absl::Status WriteModelOf(const InspectedTable& table, const TableModelFlags& flags,
                          const std::string& out, bool evaluates, Console& console);

// For `cistern train table.csv --out OUT`: inspects the table, writes model and recipe, converts
// the table to OUT/data/train and OUT/data/test. Returns the path of the model file. warnings: gets
// what is odd about the two parts of the data, for the log of the run.
absl::StatusOr<std::string> MakeModel(const std::string& path, const TableModelFlags& flags,
                                      const std::string& out, Console& console,
                                      std::vector<std::string>* warnings);

}  // namespace cistern
