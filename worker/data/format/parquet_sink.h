// Where Arrow writes a Parquet file to. Include only where Arrow is available.
#pragma once

#include <arrow/buffer.h>
#include <arrow/io/interfaces.h>

#include <memory>
#include <string>

#include "worker/data/format/output_file.h"

namespace cistern {

// Passes Arrow's output to the FileSystem. Keeps the original error of a failed call in `status`,
// which outlives this, because Arrow only keeps its text.
class ParquetSink : public arrow::io::OutputStream {
 public:
  ParquetSink(std::unique_ptr<OutputFile> file, absl::Status* status)
      : file_(std::move(file)), status_(status) {
    set_mode(arrow::io::FileMode::WRITE);
  }

  using arrow::io::OutputStream::Write;
  arrow::Status Write(const void* bytes, int64_t size) override {
    return Keep(file_->Append({static_cast<const char*>(bytes), static_cast<size_t>(size)}));
  }
  arrow::Status Close() override {
    if (closed_) return arrow::Status::OK();
    closed_ = true;
    return Keep(file_->Close());
  }
  // The file is incomplete and is dropped without a rename.
  arrow::Status Abort() override {
    closed_ = true;
    return arrow::Status::OK();
  }
  arrow::Result<int64_t> Tell() const override { return static_cast<int64_t>(file_->size()); }
  bool closed() const override { return closed_; }

 private:
  arrow::Status Keep(const absl::Status& status) {
    if (status.ok()) return arrow::Status::OK();
    *status_ = status;
    return arrow::Status::IOError(std::string(status.message()));
  }

  const std::unique_ptr<OutputFile> file_;
  absl::Status* const status_;
  bool closed_ = false;
};

}  // namespace cistern
