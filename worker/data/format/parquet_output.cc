#include "worker/data/format/parquet_output.h"

#include <arrow/buffer.h>
#include <arrow/io/interfaces.h>

#include <exception>

#include "common/io/new_file.h"

namespace cistern::data {

// Passes Arrow's output to a NewFile, and keeps the original error of a failed call.
class ParquetOutput::Sink : public arrow::io::OutputStream {
 public:
  Sink(std::unique_ptr<NewFile> file, absl::Status* status)
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
  arrow::Result<int64_t> Tell() const override { return static_cast<int64_t>(file_->bytes()); }
  bool closed() const override { return closed_; }

 private:
  arrow::Status Keep(const absl::Status& status) {
    if (status.ok()) return arrow::Status::OK();
    *status_ = status;
    return arrow::Status::IOError(std::string(status.message()));
  }

  const std::unique_ptr<NewFile> file_;
  absl::Status* const status_;
  bool closed_ = false;
};

absl::StatusOr<std::unique_ptr<ParquetOutput>> ParquetOutput::Create(
    FileSystem& files, const std::string& path, const parquet::schema::NodeVector& columns) {
  CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<NewFile> file, NewFile::Create(files, path));
  file->WillBeRead();
  std::unique_ptr<ParquetOutput> output(new ParquetOutput(path));
  output->sink_ = std::make_shared<Sink>(std::move(file), &output->sink_status_);
  CISTERN_RETURN_IF_ERROR(output->Guard([&] {
    using parquet::schema::GroupNode;
    parquet::WriterProperties::Builder properties;
    properties.compression(parquet::Compression::SNAPPY);
    output->writer_ =
        parquet::ParquetFileWriter::Open(output->sink_,
                                         std::static_pointer_cast<GroupNode>(GroupNode::Make(
                                             "schema", parquet::Repetition::REQUIRED, columns)),
                                         properties.build());
  }));
  return output;
}

ParquetOutput::~ParquetOutput() = default;

absl::Status ParquetOutput::AppendGroup(
    const std::function<void(parquet::RowGroupWriter&)>& write) {
  return Guard([&] {
    parquet::RowGroupWriter& group = *writer_->AppendRowGroup();
    write(group);
    group.Close();
  });
}

absl::Status ParquetOutput::Close() {
  return Guard([&] {
    writer_->Close();
    PARQUET_THROW_NOT_OK(sink_->Close());
  });
}

absl::Status ParquetOutput::Guard(const std::function<void()>& work) const {
  try {
    work();
    return absl::OkStatus();
  } catch (const std::exception& error) {
    if (!sink_status_.ok()) return sink_status_;
    return absl::InternalError(absl::StrCat("cannot write ", path_, ": ", error.what()));
  }
}

}  // namespace cistern::data
