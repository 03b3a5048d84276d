// A Parquet file that is being written. Include only where Arrow is available.
#pragma once

#include <parquet/api/writer.h>

#include <functional>
#include <memory>
#include <string>

#include "common/base/status.h"
#include "common/io/file_system.h"

namespace cistern::data {

// Writes row groups, compressed with snappy, through the FileSystem. The file appears under its
// name at Close. Errors are those of the file, or kInternal with the text of Arrow's exception.
//
// Threads: one at a time.
class ParquetOutput {
 public:
  // columns: of a flat schema.
  static absl::StatusOr<std::unique_ptr<ParquetOutput>> Create(
      FileSystem& files, const std::string& path, const parquet::schema::NodeVector& columns);
  ~ParquetOutput();

  // write: fills the columns of a new row group, in order; it may throw what Arrow throws.
  absl::Status AppendGroup(const std::function<void(parquet::RowGroupWriter&)>& write);
  absl::Status Close();

 private:
  class Sink;
  explicit ParquetOutput(std::string path) : path_(std::move(path)) {}
  // Runs work, which calls Arrow; an exception becomes a status.
  absl::Status Guard(const std::function<void()>& work) const;

  const std::string path_;
  absl::Status sink_status_;  // the sink's first error; Arrow only keeps its text
  // The writer writes the footer to the sink, so the sink must outlive it.
  std::shared_ptr<Sink> sink_;
  std::unique_ptr<parquet::ParquetFileWriter> writer_;
};

}  // namespace cistern::data
