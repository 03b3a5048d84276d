// Rows of record batches as rows of text: one meaning for the columns of Parquet files and of Arrow
// streams. Include only where Arrow is available.
#pragma once

#include <arrow/record_batch.h>
#include <arrow/type.h>

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "worker/data/recipe/text_table.h"

namespace cistern::data {

// OpenParquetTable (parquet_table.h) says which types there are, and how they look as text.
//
// Threads: one at a time.
class ArrowRows {
 public:
  explicit ArrowRows(ListSeparators separators) : separators_(std::move(separators)) {}

  // wanted: the names of columns; the fields of others are empty. Null: all.
  // intervals: the columns that are Parquet's INTERVAL, for which Arrow has only bytes.
  void SetSchema(const arrow::Schema& schema, const std::vector<std::string>* wanted,
                 std::set<std::string> intervals = {});

  const std::vector<std::string>& columns() const { return columns_; }
  // The columns that are read, by their places in the schema; may be empty.
  const std::vector<int>& read_columns() const { return read_columns_; }
  const std::vector<std::string>& list_columns() const { return lists_; }
  // As TextTable::WhyUnreadable.
  std::string WhyUnreadable(const std::string& column) const;

  // batch: of read_columns(), in order, with valid values (RecordBatch::ValidateFull).
  void SetBatch(std::shared_ptr<arrow::RecordBatch> batch);
  // Whether the batch has no more rows, or there is none.
  bool at_end() const { return batch_ == nullptr || at_ == batch_->num_rows(); }
  // The next row, if not at_end(). row: its fields; valid until the next call.
  // kDataLoss, without a place: a list with a value that contains the separator.
  absl::Status Next(TextRow* row);

 private:
  struct Column {
    int place = kUnread;  // in batches
    // The fields that lead to it in a struct, outermost first; of a list of structs: in the list,
    // and then in its structs.
    std::vector<int> path, path_in_list;
    bool is_list = false;
    bool is_map = false;  // is_list is false then
    bool is_interval = false;
    // Of lists of so many fractions each, which are vectors: the place of this one. is_list is
    // false.
    std::optional<int> element;
    char separator = kListSeparator;
  };
  // The values of a column in the batch, and the structs around them.
  struct Values {
    std::vector<std::shared_ptr<arrow::Array>> outer, in_list;
    std::shared_ptr<arrow::Array> values;  // of the column; the lists themselves
    std::shared_ptr<arrow::Array> items;   // of the lists, maps and vectors
    std::shared_ptr<arrow::Array> keys;    // of the maps
  };
  static constexpr int kUnread = -1;

  // Adds the columns of a field; column: what is known of them so far.
  void AddField(const std::string& name, const arrow::DataType& type, int root, Column column,
                const std::vector<std::string>* wanted);
  Values ValuesIn(const Column& column) const;
  absl::Status AppendField(size_t c);
  // The values of a list, or the entries of a map.
  absl::Status AppendEntries(size_t c);

  const ListSeparators separators_;
  std::set<std::string> intervals_;
  std::vector<std::string> columns_, lists_;
  std::vector<int> read_columns_;
  std::vector<Column> places_;                     // of columns_
  std::vector<Values> values_;                     // likewise, in the batch
  std::map<std::string, std::string> unreadable_;  // why, by column
  std::shared_ptr<arrow::RecordBatch> batch_;
  int64_t at_ = 0;            // in batch_
  std::string text_;          // the fields of a row, one after the other
  std::vector<size_t> ends_;  // of the fields
};

}  // namespace cistern::data
