// Converts text to Norm files: CSV and TSV with a header, libsvm and libfm lines, Criteo's TSV.
//
//   cistern data convert --input=train.csv --out=data/train --label=label --keys=raw --key-bits=32
//   cistern data convert --input=train.csv --out=data/train --label=click --dense=I1..I13
//       --sparse=C1..C26 --ignore=id --dense-transform=log1p --min-count=5 --vocab-out=vocab.txt
//   cistern data convert --input=test.csv --out=data/test --recipe=data/train
//   cistern data convert --input=train.txt --out=data/train --format=criteo
//   cistern data convert --input=frappe.train.libfm --out=data/train --format=libsvm
//
// The input is streamed, so memory does not depend on its size. Only a vocabulary is held in memory
// (about 12 bytes per value). The output folder holds part-00000.norm, ..., file_list.txt and the
// recipe (worker/data/recipe/recipe.h), and is created atomically.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/base/status.h"
#include "common/io/file_system.h"
#include "worker/data/format/sample_reader.h"
#include "worker/data/prepare/number_shift.h"
#include "worker/data/recipe/recipe.h"
#include "worker/data/recipe/vocabulary.h"

namespace cistern::data {

// The slots for the tokens of a libsvm line.
enum class LibsvmSlots {
  kPosition,  // token n goes to slot n; all lines have the same number of tokens
  kSingle,    // all tokens go to one slot
};

// Each field corresponds to the flag of the same name, with dashes. Lists of columns hold names and
// ranges such as "C1..C26".
struct ConvertOptions {
  // Files, read in order; "-" is standard input. All must have the same columns, but for
  // add_columns, in any order.
  std::vector<std::string> input;
  // A recipe, or a folder that holds one: the data is encoded as it says, and the options of
  // format, columns, labels, dense features, slots and keys are not used. Columns are found by
  // name.
  std::string recipe;
  // With recipe: values of this data that occur often enough are added to the vocabulary. The data
  // gets the extended recipe, whose history names the given one. The input is read twice.
  bool extend = false;
  // Counts of values that were rare in earlier data (vocabulary files); they count for extend.
  std::vector<std::string> rare_in;
  // FitRecipe and ExtendRecipe: writes the counts of rare values of this data; empty: does not.
  std::string rare_out;
  // Output folder. It must not exist, be empty or, with overwrite, hold a data set.
  std::string out;
  bool overwrite = false;

  TextFormat format = TextFormat::kCsv;
  // 0: ',' for CSV, tab for TSV and Criteo. Only CSV supports quotes (RFC 4180).
  char delimiter = 0;
  // Column names for a CSV or TSV file without a header line; empty: the first line names them.
  std::vector<std::string> columns;

  // Columns that some of the files lack: they are empty there.
  std::vector<std::string> add_columns;

  // libsvm and Criteo have a fixed label column. label_dim is the number of columns.
  std::vector<std::string> label = {"label"};
  // The column of the sample's weight, which becomes one more label of the data; empty: none.
  std::string weight;
  // A label above it becomes 1, any other becomes 0. Not set: labels are kept, and negative labels
  // are refused.
  std::optional<double> label_threshold;
  // Labels with one of these texts become 1, any other 0. Not with label_threshold.
  std::vector<std::string> positive;
  // With positive: the labels that become 0. Others are refused, unless they mean the same as one
  // of either list (Recipe::Label).
  std::vector<std::string> negative;
  std::vector<std::string> dense;
  // kStandardize: mean and deviation of each column, or of its logarithms, are those of the rows
  // that are counted (fit_rows), so the input is read twice.
  DenseTransform dense_transform = DenseTransform::kAuto;
  // Columns among the dense ones that become logarithms, which kStandardize then standardizes.
  std::vector<std::string> log1p;
  double dense_missing = 0;  // value of an empty dense field; not transformed
  // Bounds of dense columns, by name: numbers beyond them count as the bounds.
  std::map<std::string, std::pair<double, double>> bounds;
  // Dense columns that also become a dense feature for each piece between two neighbours of these
  // ascending numbers: the number, moved to the nearer end of the piece, and standardized. A sum of
  // such features is a function of the number that bends at each of them (Gorishniy et al. 2022).
  std::map<std::string, std::vector<double>> pieces;
  // Dense columns that also become a dense feature that is 1 where the number is missing, else 0.
  std::vector<std::string> told_missing = {};
  // One slot per column, in this order; a column can be listed twice. Empty: every column that is
  // not listed elsewhere, in the order of the file (Criteo: bucketed columns and C1..C26).
  std::vector<std::string> sparse;
  // Numeric columns among the sparse ones. A number x > 2 becomes the value "b" + floor(ln(x)^2),
  // any other number floor(x). Hashed keys only.
  std::vector<std::string> bucket;
  // Crosses, after the other slots: each a list of columns, separated by commas, whose combinations
  // of values are the values of one more slot. A column of `bucket` or `multi` is read so here too;
  // `bucket` may name columns that only a cross reads. Hashed keys only.
  std::vector<std::string> cross;
  // Each a list of slots, separated by commas, that share keys: a value has the same key, and so
  // the same row of an embedding, in all of them. Hashed keys only.
  std::vector<std::string> share;
  // Columns to skip. If `sparse` is set, a column without a role is an error; "*" skips all columns
  // without a role.
  std::vector<std::string> ignore;
  // Sparse or crossed columns that hold several values, separated by `separator`.
  std::vector<std::string> multi;
  char separator = '|';
  // Columns of several values whose keys keep the weights of their values: "tags", where the weight
  // follows each value ("a:0.5|b:0.3"), or "tags=shares", where the weights are the numbers of
  // another column, a list as long. They need not be named in `multi`. Of libsvm and libffm lines
  // all features or none have weights, the values: "*", or the names of all columns.
  std::vector<std::string> key_weights;
  // Columns of `multi` in another form.
  struct ListForm {
    char separator = '|';
    bool list = false, weights = false;  // as in Recipe::Source
    char weight_mark = ':';              // as in Recipe::Slot
  };
  std::map<std::string, ListForm> forms;
  // Sparse or crossed columns of integers, however they are written (Recipe::Source).
  std::vector<std::string> integers;
  // How the numbers of dense columns and buckets are written, by column, if they are not plain.
  std::map<std::string, NumberForm> numbers;
  // Without a recipe: the first file tells how the numbers of other such columns are written.
  bool find_numbers = false;
  bool trim = false;  // spaces around a field do not count
  // Texts that are treated as empty, such as "NA" or "\N".
  std::vector<std::string> missing_values;
  StandIn missing = StandIn::kNone;

  KeyMode keys = KeyMode::kAuto;
  int key_bits = 64;  // 64: input_key_type I64; 32: I32, with more collisions of hashed keys

  // Values with a lower count in their column are rare. Above 1, the input is read twice.
  uint64_t min_count = 1;
  // Counts values only in the first rows (after skip_rows); 0: all. Values not in these are rare.
  uint64_t fit_rows = 0;
  // vocab_out: writes the values that are not rare, for the test data. vocab_in: reads them.
  std::string vocab_out, vocab_in;
  StandIn rare = StandIn::kKey;

  LibsvmSlots libsvm_slots = LibsvmSlots::kPosition;
  // Accepts "index:value" with a value other than 1 and ignores it; a value of 0 drops the key. Not
  // with key_weights.
  bool any_value = false;

  uint64_t skip_rows = 0;  // over the whole input, without header lines
  uint64_t max_rows = 0;   // 0: all
  // Selects among these rows, such as those of a held-out part. row: its number in the whole input,
  // from 0; fields: by column. Null: all rows. The result must not depend on earlier calls, because
  // the input may be read twice.
  std::function<bool(uint64_t row, const std::vector<absl::string_view>& fields)> select;
  // Of the selected rows whose label is negative, about this share is kept, chosen by a hash of the
  // row's number; 1: all. For data to train on, and a model whose negative_rate is the same. Data
  // with one label only.
  double negative_rate = 1;

  NormCheck check = NormCheck::kSum;
  uint64_t samples_per_file = 100000;
  // For Convert itself: the columns that folders of partitioned inputs stand for.
  std::vector<std::string> partitions;
  std::vector<std::string> parts;  // columns that are parts of others (part_columns.h)
  // The file system to write to; not owned. Null: the local disk.
  FileSystem* files = nullptr;
};

// kInvalidArgument unless a share of negative rows is above 0 and at most 1.
absl::Status CheckNegativeRate(double rate);

struct ConvertSummary {
  std::vector<std::string> written_numbers;  // with find_numbers: sentences about columns
  struct Dense {
    std::string column;
    uint64_t missing = 0;
    uint64_t beyond = 0;  // numbers moved to a bound of the recipe
  };
  struct Slot {
    std::string column;
    uint64_t distinct = 0;       // keys, including the keys of missing and rare values
    bool distinct_exact = true;  // false: estimated within about 2 %
    uint64_t missing = 0;        // fields without a value
    uint64_t rare = 0;           // rare values
    uint64_t values = 0;         // of all rows, rare ones included
    uint32_t max_keys = 0;       // maximum per sample
    // With a recipe: a sentence about values that are known in another way (SpellingCheck), or
    // nothing.
    std::string spelling;
  };
  uint64_t samples = 0, files = 0, bytes = 0;
  struct Label {
    uint64_t positive = 0, known = 0;  // above 0; not -1
  };
  std::vector<Label> labels;               // without the weight
  uint64_t positives = 0;                  // of the first label
  double weight = 0, positive_weight = 0;  // of the samples, and of these; without weights 1 each
  double weight_squares = 0;               // their sum
  uint64_t left_out = 0;                   // negative rows, by negative_rate
  uint32_t max_keys = 0;  // maximum per sample: lower bound of max_feature_num_per_sample
  SampleShape shape;      // one sparse input
  std::vector<Dense> dense;
  DenseSums dense_sums;
  std::vector<Slot> slots;
  uint64_t vocabulary = 0;  // size of the vocabulary; 0 without one
  // With extend: the number of values that were added, by column of the vocabulary.
  std::vector<std::pair<std::string, uint64_t>> added;
  std::string file_list;  // path
  std::string recipe;     // path
  int key_bits = 64;
  // Columns of slots whose values are mostly numbers with a fraction, each a key of its own.
  std::vector<std::string> number_slots;
  std::string not_utf8;  // the first place with text that is not UTF-8: "in.csv: line 7"; or empty
  std::vector<std::string> odd_fields;  // sentences about them (TextTable::odd_fields)
};

struct ConvertProgress {
  const char* stage = "";  // "counting values" or "writing"
  uint64_t rows = 0;
  uint64_t bytes = 0, bytes_total = 0;  // of the input; bytes_total 0: unknown
};

// Called every few thousand rows, on the thread that called Convert. Returning false stops the
// conversion with kCancelled and leaves no output.
using ConvertProgressCallback = std::function<bool(const ConvertProgress&)>;

// kInvalidArgument: options that contradict each other or the columns; kDataLoss and kOutOfRange:
// bad input, with file, line, column, cause and fix; kNotFound, kResourceExhausted: file errors.
absl::StatusOr<ConvertSummary> Convert(const ConvertOptions& options,
                                       const ConvertProgressCallback& progress = nullptr);

// Writes the recipe of such a conversion and its vocabulary to the existing folder options.out,
// without data: Convert with this recipe then encodes other files in the same way.
// options.recipe must be empty. Errors as Convert.
absl::StatusOr<Recipe> FitRecipe(const ConvertOptions& options,
                                 const ConvertProgressCallback& progress = nullptr);

// Extends options.recipe by the values of the input, as `extend` does, and writes the new recipe
// and its vocabulary to the existing folder options.out, without data. grown: what the input holds.
absl::StatusOr<Recipe> ExtendRecipe(const ConvertOptions& options, std::vector<GrownColumn>* grown,
                                    const ConvertProgressCallback& progress = nullptr);

}  // namespace cistern::data
