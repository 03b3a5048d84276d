// Text into Norm files: CSV and TSV with a header, libsvm and libfm lines, Criteo's TSV.
//
//   cistern data convert --input=train.csv --out=data/train --label=label --keys=raw --key-bits=32
//   cistern data convert --input=train.csv --out=data/train --label=click --dense=I1..I13
//       --sparse=C1..C26 --ignore=id --dense-transform=log1p --min-count=5 --vocab-out=vocab.txt
//   cistern data convert --input=test.csv --out=data/test ... --vocab-in=vocab.txt
//   cistern data convert --input=train.txt --out=data/train --format=criteo
//   cistern data convert --input=frappe.train.libfm --out=data/train --format=libsvm
//
// Input is streamed, so memory does not depend on its size; only a vocabulary is held whole (about
// 12 bytes a value). The output folder holds part-00000.norm, ... and file_list.txt, and appears
// whole or not at all.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/io/file_system.h"
#include "worker/data/format/sample_reader.h"

namespace cistern {

// How the text of a sparse field becomes a key.
enum class KeyMode {
  kAuto,  // raw for libsvm, hash for the others
  kRaw,   // the text is the key: an integer from 0
  kHash,  // XXH3 of "column=text", cut to the width of keys and never the reserved key
};
enum class TextFormat { kCsv, kTsv, kLibsvm, kCriteo };
// What stands for a value that is missing or rare.
enum class StandIn {
  kNone,  // nothing: the slot holds no key for it
  kKey,   // one key a column; hashed keys only
};
enum class DenseTransform {
  kAuto,  // log1p for Criteo, none for the others
  kNone,
  kLog1p,  // ln(1 + x); below 0: 0
};
// Where the tokens of a libsvm line go.
enum class LibsvmSlots {
  kPosition,  // the n-th token to slot n; every line has as many as the first
  kSingle,    // all to one slot
};

// Each field is the flag of the same name with dashes. Lists of columns hold names and ranges such
// as "C1..C26".
struct ConvertOptions {
  // Files, read one after the other; "-" is standard input. Columns of all must be the same.
  std::vector<std::string> input;
  // Folder to make. One that exists must be empty, or, with overwrite, a data set made before.
  std::string out;
  bool overwrite = false;

  TextFormat format = TextFormat::kCsv;
  // 0: ',' for CSV, tab for TSV and Criteo. Only CSV knows quotes (RFC 4180).
  char delimiter = 0;
  // Names for a CSV or TSV file that has no header line; empty: its first line names them.
  std::vector<std::string> columns;

  // libsvm and Criteo name their own label. Several columns make a label_dim of several.
  std::vector<std::string> label = {"label"};
  // A label above it becomes 1, any other 0. Not set: labels are kept, and a negative one is
  // refused.
  std::optional<double> label_threshold;
  std::vector<std::string> dense;
  DenseTransform dense_transform = DenseTransform::kAuto;
  double dense_missing = 0;  // what an empty dense field becomes; not transformed
  // One slot each, in this order; a column may stand here twice. Empty: every column that is not
  // named elsewhere, in the file's order (Criteo: bucketed ones and C1..C26).
  std::vector<std::string> sparse;
  // Numeric ones among the sparse columns: x > 2 becomes the value "b" + floor(ln(x)^2), any other
  // floor(x). Hashed keys only.
  std::vector<std::string> bucket;
  // Columns to pass over. With `sparse` given, a column that is named nowhere is refused; "*"
  // passes over all of those.
  std::vector<std::string> ignore;
  // Sparse columns that hold several values, parted by `separator`.
  std::vector<std::string> multi;
  char separator = '|';
  // Texts that count as empty, such as "NA" or "\N".
  std::vector<std::string> missing_values;
  StandIn missing = StandIn::kNone;

  KeyMode keys = KeyMode::kAuto;
  int key_bits = 64;  // 64: input_key_type I64; 32: I32, where hashed keys collide sooner

  // Values seen fewer times in their column are rare. Above 1 the input is read twice.
  uint64_t min_count = 1;
  // Counts only the first rows (after skip_rows); 0: all. A value that they do not hold is rare.
  uint64_t fit_rows = 0;
  // Writes the values that are not rare, for the test data; or takes them from such a file.
  std::string vocab_out, vocab_in;
  StandIn rare = StandIn::kKey;

  LibsvmSlots libsvm_slots = LibsvmSlots::kPosition;
  // Accepts "index:value" with a value other than 1, which is then dropped; 0 drops the key as
  // well.
  bool any_value = false;

  uint64_t skip_rows = 0;  // of the whole input, header lines not counted
  uint64_t max_rows = 0;   // 0: all

  NormCheck check = NormCheck::kSum;
  uint64_t samples_per_file = 100000;
  // The disk that is written to; not owned. Null: the machine's own.
  FileSystem* files = nullptr;
};

struct ConvertSummary {
  struct Dense {
    std::string column;
    uint64_t missing = 0;
  };
  struct Slot {
    std::string column;
    uint64_t distinct = 0;       // keys, stand-ins counted
    bool distinct_exact = true;  // else estimated, within about 2 %
    uint64_t missing = 0;        // fields without a value
    uint64_t rare = 0;           // values that were rare
    uint32_t max_keys = 0;       // of a sample
  };
  uint64_t samples = 0, files = 0, bytes = 0;
  uint64_t positives = 0;  // first label above 0
  uint32_t max_keys = 0;   // of a sample, all slots: the least max_feature_num_per_sample
  SampleShape shape;       // one sparse input
  std::vector<Dense> dense;
  std::vector<Slot> slots;
  uint64_t vocabulary = 0;  // values that are not rare; 0 without a vocabulary
  std::string file_list;    // path
};

struct ConvertProgress {
  const char* stage = "";  // "counting values" or "writing"
  uint64_t rows = 0;
  uint64_t bytes = 0, bytes_total = 0;  // of the input; total 0: not known
};

// Called every few thousand rows, from the calling thread. false stops: kCancelled, nothing is
// left.
using ConvertProgressCallback = std::function<bool(const ConvertProgress&)>;

// kInvalidArgument: options that do not fit each other or the columns; kDataLoss and kOutOfRange:
// bad input, with file, line, column, cause and cure; kNotFound, kResourceExhausted: files.
absl::StatusOr<ConvertSummary> Convert(const ConvertOptions& options,
                                       const ConvertProgressCallback& progress = nullptr);

}  // namespace cistern
