// A model from a table: what `cistern init` and `cistern train` do with a CSV or TSV file in place
// of a model file.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/terminal/command_line.h"
#include "cli/terminal/report.h"
#include "worker/data/prepare/table_plan.h"
#include "worker/data/prepare/table_profile.h"
#include "worker/model/config/model_template.h"

namespace cistern {

struct TableModelFlags {
  TableWishes wishes;
  std::string model = "auto";        // or a word of ModelKindOf
  std::string delimiter, separator;  // "": found
  std::string label_threshold;       // a number; "": none
  double negative_rate = 0;          // of the rows to train on; 0: not given, all
  std::vector<std::string> columns;  // of files without a header line
  std::string valid;                 // train: the evaluation data, which chooses the epoch
  std::string test;  // train: as valid if that is empty; else data that is scored once, at the end
  double kept_negatives() const { return negative_rate == 0 ? 1 : negative_rate; }
  // What chooses the epoch; empty: rows that are held out.
  const std::string& evaluation() const { return valid.empty() ? test : valid; }
  // The data that is scored at the end; empty: none.
  std::string final_test() const { return valid.empty() ? "" : test; }
};

// One character, as people type it: "tab", "space", "\\x01" or the character itself. 0 for "".
absl::StatusOr<char> CharacterOf(const char* flag, const std::string& word);

// The number of --label-threshold; none for "".
absl::StatusOr<std::optional<double>> ThresholdOf(const std::string& text);

// Adds --label, --positive, --dense, --sparse, --ignore, --model and the flags of the layout.
void AddTableModelFlags(Command& command, TableModelFlags* flags);
// The first of these flags, and of --valid and --test, that was given; "" for none.
std::string GivenTableFlag(const TableModelFlags& flags);

// Whether a file is a table and not a model file: by its name (*.csv, *.tsv, *.jsonl, compressed or
// not; *.parquet), or by its first lines (*.txt, *.data, *.json with an object a line ...); or a
// folder or pattern of such files.
bool IsTable(const std::string& path);

// The name of one table whose files are those of the arguments. kInvalidArgument, with a fix: one
// is no table, or has a comma in its name.
absl::StatusOr<std::string> TableOf(const std::string& first, const std::vector<std::string>& more);

// What was found in a table.
struct InspectedTable {
  TableProfile profile;
  TablePlan plan;
};

// Reads the table once. kInvalidArgument, kDataLoss with a fix; kInvalidArgument too if the kind of
// model does not fit the number of labels, or, for esmm, their order.
absl::StatusOr<InspectedTable> InspectTable(const std::string& path, const TableModelFlags& flags,
                                            Console& console);
// A row per column: type, distinct and missing values, role.
std::string TextOf(const InspectedTable& table);
nlohmann::ordered_json JsonOf(const InspectedTable& table);

// The kind of model that flags.model names, or that suits the table. Several labels need one that
// predicts several; InspectTable checks it.
ModelKind KindFor(const InspectedTable& table, const TableModelFlags& flags);

// The counts of values that are too rare for keys of their own: more data may make them frequent.
inline constexpr char kRareFile[] = "rare.txt";

// The data set of final_test(), below OUT/data.
inline constexpr char kFinalTest[] = "final";

// Writes OUT/model.json, OUT/recipe.json with its vocabulary, and OUT/rare.txt. evaluates: the
// model file names OUT/data/test.
absl::Status WriteModelOf(const InspectedTable& table, const TableModelFlags& flags,
                          const std::string& out, bool evaluates, Console& console);

// For `cistern train table.csv --out OUT`: inspects the table, writes model and recipe, converts
// the table to OUT/data/train and OUT/data/test. Returns the path of the model file. warnings: gets
// what is odd about the two parts of the data, for the log of the run.
absl::StatusOr<std::string> MakeModel(const std::string& path, const TableModelFlags& flags,
                                      const std::string& out, Console& console,
                                      std::vector<std::string>* warnings);

}  // namespace cistern
