// The data with which a finished run continues.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/data/table_model.h"
#include "common/base/status.h"

namespace cistern::app {

struct MoreOptions {
  std::string out;  // the folder of the run
  std::vector<std::string>
      files;  // data sets, or tables (*.csv, *.tsv, *.parquet, folders of them)
  // What the run evaluates on so far; empty: nothing, and no rows are held out.
  std::string eval_source;
  std::string valid;  // a table to evaluate on, in place of rows that are held out
  std::string test;   // a table that is scored at the end: becomes OUT/data/final
  // Of tables: the names of their columns, if they have no header line, and what separates their
  // fields. Empty, 0: as OpenRecipeTable finds them.
  std::vector<std::string> columns;
  char delimiter = 0;
  // Columns of the recipe that some of the tables lack: they are empty there.
  std::vector<std::string> add_columns;
  uint32_t workers = 1;
  double share = 0;  // of positive labels so far; 0: not known
  // The model's negative_rate, and what the caller says of the tables: as much of their negative
  // rows is kept, or, if it is 1, they hold no more. 0: nothing was said.
  double model_negatives = 1, table_negatives = 0;
  double eval_negatives = 1;  // the share of its negative rows that eval_source holds
};

struct MoreData {
  std::string source;
  std::string eval_source;  // empty: as before
  // The share of positive labels to expect: that of the tables with the rows that are held out of
  // them, or MoreOptions::share, if chance explains the difference. So the same command has the
  // same share again. Negative rows that the tables lack count. nullopt: no tables.
  std::optional<double> share;
  double eval_negatives = 1;          // the share of its negative rows that eval_source holds
  bool exact_share = false;           // eval_source holds a random part of these rows
  uint64_t max_keys = 0;              // of a sample, over all slots; 0: not converted, so not known
  std::vector<std::string> warnings;  // for the log of the run
};

// Sources that the model can read: the files themselves or, for tables, data sets OUT/more/NAME.
//
// Tables are converted by the recipe of the run, extended by their values that occur often enough
// (with those that were rare in earlier days: OUT/rare.txt, OUT/more/NAME.rare). A tenth of their
// rows is held out in OUT/more/NAME.test, and becomes the evaluation data of the run.
//
// kInvalidArgument, with a fix: the run has no recipe; a column to add that it does not have; there
// are several workers, each of which would convert; the new rows are of one class, or nearly so
// where earlier ones were not; tables whose share of negative rows is not said, or is not that of
// the model.
absl::StatusOr<MoreData> ConvertMore(const MoreOptions& options, const TableCalls& calls);

}  // namespace cistern::app
