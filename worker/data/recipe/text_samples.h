// Reads rows of text as samples, as a recipe says: for predictions of CSV and TSV files.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "common/base/status.h"
#include "worker/data/format/sample_reader.h"
#include "worker/data/recipe/json_table.h"
#include "worker/data/recipe/recipe_folder.h"
#include "worker/data/recipe/row_encoder.h"
#include "worker/data/recipe/text_table.h"

namespace cistern::data {

// The texts of columns that come back beside the predictions, in the order of the rows.
//
// Threads: one puts, one takes.
class KeptColumns {
 public:
  void Put(std::vector<std::string> row);
  // The oldest row that was not taken yet. At least one must have been put.
  std::vector<std::string> Take();

 private:
  absl::Mutex mutex_;
  std::deque<std::vector<std::string>> rows_ ABSL_GUARDED_BY(mutex_);
};

// Opens a file of rows that a recipe describes. Names in another case are those of the
// recipe (known_names.h). delimiter, columns: as in TextInput. Without a
// delimiter, that of the training text, or another one of , tab ; | if only that fits. members: of
// all files of the table that are JSON Lines; null: those of this file.
absl::StatusOr<std::unique_ptr<TextTable>> OpenRecipeTable(const Recipe& recipe,
                                                           const std::string& path, char delimiter,
                                                           const std::vector<std::string>& columns,
                                                           const JsonColumns* members = nullptr);

struct TextInput {
  std::vector<std::string> files;  // read in order; "-" is standard input
  char delimiter = 0;              // 0: found (OpenRecipeTable)
  // Names the columns of files without a header line. Empty: the first line of a file is its header
  // if it names all columns that the recipe reads. Without a header, a file needs all columns of
  // the training text in their order, with or without the labels.
  std::vector<std::string> columns;
  std::vector<std::string> add_columns = {};  // columns that are empty in files that lack them
  std::vector<std::string> keep;              // columns to put into `kept`
  Labels labels = Labels::kOptional;          // kNeeded: for training
};

// What was odd about the rows that were read. Complete once their reader has returned its last row.
struct TextFindings {
  uint64_t rows = 0;
  bool complete = false;                // the reader has returned its last row
  std::vector<uint64_t> missing, rare;  // by slot of the recipe: values without text, and rare ones
  std::vector<uint64_t> beyond;         // by dense feature: numbers moved to a bound
  std::vector<std::string> odd_fields;  // sentences about them (TextTable::odd_fields)
  std::vector<std::string> spellings;   // by slot: a sentence (SpellingCheck), or nothing
  std::string not_utf8;  // the first place with text that is not UTF-8: "in.csv: line 7"; or empty
};

// Rows may be in any order of columns, matched by name; columns that the recipe does not read are
// skipped. A label that is absent or empty is -1, such a weight 1, unless they are needed.
//
// slot_nums: of the model's sparse inputs, which share the slots of the recipe in order.
// kept, findings: outlive the reader; null: none.
// kInvalidArgument: a column is missing, or the number of fields is wrong; kDataLoss, kOutOfRange:
// a field cannot be encoded. Each names file, line and column.
absl::StatusOr<std::unique_ptr<SampleReader>> OpenTextSamples(
    std::shared_ptr<const OwnedEncoder> encoder, const TextInput& input,
    const std::vector<uint32_t>& slot_nums, KeptColumns* kept, TextFindings* findings = nullptr);

// kInvalidArgument unless samples of the recipe have the shape that a model reads.
absl::Status CheckRecipeShape(const Recipe& recipe, const SampleShape& model, bool wide_keys);

}  // namespace cistern::data
