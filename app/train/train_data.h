// The training data of a run: what its model file names, a table of text, more data for a finished
// run, or a stream.
#pragma once

#include <string>
#include <vector>

#include "app/data/table_model.h"
#include "app/data/table_options.h"
#include "app/train/train_run.h"
#include "app/train/train_stream.h"
#include "common/base/status.h"

namespace cistern::app {

struct TrainData {
  // How a model is made of the table that TrainRunOptions::model names in place of a model file.
  // With `more`: its valid and test data, and the share of negative rows, the delimiter and the
  // names of the columns of its tables.
  TableOptions table;
  std::vector<std::string> tables;  // further files of the table
  // Data sets or tables of text: a finished run continues with them (more_data.h).
  std::vector<std::string> more;
  StreamOptions stream;

  // The options that are about the table of the run, and not about more data.
  TableOptions of_table() const;
};

// Makes `data` the data of the run: options->model.config becomes a model file, and options->out
// the folder of the run that it named. A table, or text of `more`, is converted first, below the
// folder of the run.
//
// kInvalidArgument, with options and a fix: a table to resume, or for several workers, each of
// which would convert; what excludes each other; options for tables without one. Errors of
// JoinTables, ResolveRunFolder, ApplyStream, PrepareRunFolder, MakeTableModel and ConvertMore.
absl::Status ApplyTrainData(const TrainData& data, TrainRunOptions* options,
                            const TableCalls& calls);

}  // namespace cistern::app
