// How a model is made of a table of text.
#pragma once

#include <string>
#include <vector>

#include "common/base/status.h"
#include "worker/data/prepare/table_plan.h"

namespace cistern::app {

struct TableOptions {
  data::TableWishes wishes;              // what becomes of the columns
  std::string model = "auto";            // or a word of ModelKindOf
  char delimiter = 0;                    // between fields; 0: found
  std::vector<std::string> columns;      // of files without a header line
  std::vector<std::string> add_columns;  // that some of the files lack: they are empty there
  double negative_rate = 0;              // of the rows to train on; 0: not given, all
  std::vector<std::string> set;          // overrides of the model file, which are checked early
  std::string valid;                     // the evaluation data, which chooses the epoch
  std::string test;  // as valid if that is empty; else data that is scored once, at the end

  double kept_negatives() const { return negative_rate == 0 ? 1 : negative_rate; }
  // What chooses the epoch; empty: rows that are held out.
  const std::string& evaluation() const { return valid.empty() ? test : valid; }
  // The data that is scored at the end; empty: none.
  std::string final_test() const { return valid.empty() ? "" : test; }
};

// The first option that differs from its default, such as "label_threshold"; "" for none.
std::string GivenOption(const TableOptions& options);

// One character, as people type it: "tab", "space", "\\x01" or the character itself; 0 for "".
// kInvalidArgument: more than one.
absl::StatusOr<char> ParseCharacter(const std::string& word);

}  // namespace cistern::app
