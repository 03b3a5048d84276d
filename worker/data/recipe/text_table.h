// A text file as a table with named columns, read row by row.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/base/status.h"
#include "worker/data/recipe/feature_line.h"

namespace cistern::data {

// The separator of the values of a list, unless ListSeparators has another one for its column.
inline constexpr char kListSeparator = '|';
// By column: what separates the values of a field for its reader (SeparatorsOf in recipe.h).
using ListSeparators = std::map<std::string, char>;
// That of a column, which may have another case (known_names.h).
char SeparatorOf(const ListSeparators& separators, const std::string& column);

struct TextRow {
  std::vector<absl::string_view> fields;  // one per column; valid until the next row is read
  uint64_t line = 0;                      // first line of the row, from 1
};

// Threads: one at a time.
class TextTable {
 public:
  virtual ~TextTable() = default;
  virtual const std::vector<std::string>& columns() const = 0;
  // Reads the next row; false at the end. kDataLoss names file and line.
  virtual absl::StatusOr<bool> Next(TextRow* row) = 0;
  // Whether the last error concerned only its row, so that Next can read on after it.
  virtual bool can_continue() const { return false; }
  // The columns that hold lists, which its file has as such, without a separator.
  virtual std::vector<std::string> list_columns() const { return {}; }
  // Why a column cannot be read; its fields are empty then. "" for one that can.
  virtual std::string WhyUnreadable(const std::string& column) const { return ""; }
  // Sentences about fields that were read and lack parts that the training data has
  // (part_columns.h).
  virtual std::vector<std::string> odd_fields() const { return {}; }
  // Whether its rows are objects with names of their own, instead of lines below a header.
  virtual bool has_objects() const { return false; }
  // Bytes of the file read so far.
  virtual uint64_t bytes_read() const = 0;
};

// A table whose rows are those of another one with other columns.
class ChangedTable : public TextTable {
 public:
  explicit ChangedTable(std::unique_ptr<TextTable> table) : table_(std::move(table)) {}
  bool can_continue() const override { return table_->can_continue(); }
  std::vector<std::string> list_columns() const override { return table_->list_columns(); }
  std::string WhyUnreadable(const std::string& column) const override {
    return table_->WhyUnreadable(column);
  }
  std::vector<std::string> odd_fields() const override { return table_->odd_fields(); }
  bool has_objects() const override { return table_->has_objects(); }
  uint64_t bytes_read() const override { return table_->bytes_read(); }

 protected:
  const std::unique_ptr<TextTable> table_;
};

// kInvalidArgument, with the reason, if one of the columns cannot be read.
absl::Status CheckReadable(const TextTable& table, const std::vector<std::string>& columns);

// How a text is read; each format uses those that apply to it.
struct TextOptions {
  char delimiter = ',';
  bool quotes = true;  // fields can be in double quotes (RFC 4180)
  // Empty: the first line names them, or the features of the lines do.
  std::vector<std::string> columns = {};
  bool trim = false;  // spaces around a field do not count
  // Decides what the first line is, instead of `columns`: returns the columns of a file without a
  // header line, or nothing if the line is the header. An error gets file and line.
  std::function<absl::StatusOr<std::vector<std::string>>(const std::vector<std::string>& line)>
      choose_columns = {};
  bool single_slot = false;  // libsvm: one column "features" with values separated by spaces
  FeatureValues values = FeatureValues::kOnes;  // of formats with features
};

// Skips empty lines, and lines that repeat the header, as files have that were joined by cat.
// kDataLoss: an empty file, a duplicate column name, or a header line with another order of columns
// further below.
absl::StatusOr<std::unique_ptr<TextTable>> OpenDelimited(const std::string& path,
                                                         const TextOptions& options);

// Lines "label index:value index:value ...", with an optional "# comment"; "qid:7", the query of a
// ranking, is skipped. Columns are "label" and
// "0", "1", ..., one per feature in the first line; a field is the text of the index, or
// "index:value" with FeatureValues::kWeights.
absl::StatusOr<std::unique_ptr<TextTable>> OpenLibsvm(const std::string& path,
                                                      const TextOptions& options);

// Lines "label field:feature:value ...". Columns are "label" and the numbers of the fields, in
// order; a field holds its features, separated by spaces, as "feature:value" with
// FeatureValues::kWeights. Without options.columns they are those of all lines, for which the file
// is read once before.
absl::StatusOr<std::unique_ptr<TextTable>> OpenLibffm(const std::string& path,
                                                      const TextOptions& options);

// Lines of Vowpal Wabbit, "label 'tag|namespace feature feature:value ... |namespace ...". Columns
// are "label" and the namespaces, in order, as for libffm; features without one are in
// kNoNamespace. A line without a label has an empty one.
absl::StatusOr<std::unique_ptr<TextTable>> OpenVw(const std::string& path,
                                                  const TextOptions& options);

}  // namespace cistern::data
