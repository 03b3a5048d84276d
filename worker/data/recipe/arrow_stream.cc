#include "worker/data/recipe/arrow_stream.h"

#include <arrow/buffer.h>
#include <arrow/io/memory.h>
#include <arrow/ipc/dictionary.h>
#include <arrow/ipc/reader.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/shown_text.h"
#include "worker/data/format/parquet_memory.h"
#include "worker/data/recipe/arrow_rows.h"

namespace cistern::data {
namespace {

// Reads the messages of a stream, and notes whether it ends with the mark of the end.
class StreamMessages : public arrow::ipc::MessageReader {
 public:
  // source, has_end: outlive this.
  StreamMessages(arrow::io::BufferReader* source, bool* has_end)
      : source_(*source), has_end_(*has_end), messages_(MessageReader::Open(source)) {}
  arrow::Result<std::unique_ptr<arrow::ipc::Message>> ReadNextMessage() override {
    ARROW_ASSIGN_OR_RAISE(const int64_t begin, source_.Tell());
    auto message = messages_->ReadNextMessage();
    if (message.ok() && *message == nullptr) {
      ARROW_ASSIGN_OR_RAISE(const int64_t end, source_.Tell());
      has_end_ = end > begin;
    }
    return message;
  }

 private:
  arrow::io::BufferReader& source_;
  bool& has_end_;
  const std::unique_ptr<MessageReader> messages_;
};

class ArrowStream : public TextTable {
 public:
  ArrowStream(size_t bytes, const ListSeparators& separators)
      : memory_(static_cast<int64_t>(bytes)), cells_(separators) {}

  absl::Status Open(absl::string_view bytes, const std::vector<std::string>& wanted) {
    return Run([&]() -> absl::Status {
      CISTERN_RETURN_IF_ERROR(Copy(bytes));
      CISTERN_RETURN_IF_ERROR(ReadSchema(wanted));
      arrow::ipc::IpcReadOptions options;
      options.memory_pool = &memory_;
      options.included_fields = cells_.read_columns();
      options.use_threads = false;
      options.ensure_alignment = arrow::ipc::Alignment::kDataTypeSpecificAlignment;
      source_ = std::make_unique<arrow::io::BufferReader>(bytes_);
      auto batches = arrow::ipc::RecordBatchStreamReader::Open(
          std::make_unique<StreamMessages>(source_.get(), &has_end_), options);
      if (!batches.ok()) return Refused(batches.status());
      batches_ = *std::move(batches);
      return absl::OkStatus();
    });
  }

  const std::vector<std::string>& columns() const override { return cells_.columns(); }
  std::vector<std::string> list_columns() const override { return cells_.list_columns(); }
  std::string WhyUnreadable(const std::string& column) const override {
    return cells_.WhyUnreadable(column);
  }
  uint64_t bytes_read() const override { return static_cast<uint64_t>(Place()); }

  absl::StatusOr<bool> Next(TextRow* row) override {
    while (!ended_ && cells_.at_end()) {
      CISTERN_RETURN_IF_ERROR(Run([&] { return ReadBatch(); }));
    }
    if (ended_) return false;
    row->line = ++row_;
    CISTERN_RETURN_IF_ERROR(cells_.Next(row));
    return true;
  }

 private:
  // Runs work, which returns a status. Of Arrow's functions here, none throws, but memory can end.
  template <typename Work>
  absl::Status Run(const Work& work) {
    try {
      return work();
    } catch (const std::bad_alloc&) {
      return absl::ResourceExhaustedError("not enough memory to read it");
    }
  }

  absl::Status Refused(const arrow::Status& status) const {
    if (memory_.refused() > 0) {
      return absl::DataLossError(absl::StrCat(
          "is corrupt: a part of it requests ", memory_.refused(),
          " bytes of memory, but an Arrow stream of this size needs at most ", memory_.limit()));
    }
    if (status.IsOutOfMemory()) {
      return absl::ResourceExhaustedError("not enough memory to read it");
    }
    if (status.IsNotImplemented()) {
      return absl::UnimplementedError(
          absl::StrCat("cannot be read as an Arrow stream: ", status.message()));
    }
    return absl::DataLossError(
        absl::StrCat("is not a valid Arrow stream: ", ShownText(status.message())));
  }

  // Arrow reads values where they are, so the bytes must be aligned.
  absl::Status Copy(absl::string_view bytes) {
    auto buffer = arrow::AllocateBuffer(static_cast<int64_t>(bytes.size()), &memory_);
    if (!buffer.ok()) return Refused(buffer.status());
    std::memcpy((*buffer)->mutable_data(), bytes.data(), bytes.size());
    bytes_ = *std::move(buffer);
    return absl::OkStatus();
  }

  absl::Status ReadSchema(const std::vector<std::string>& wanted) {
    arrow::io::BufferReader source(bytes_);
    arrow::ipc::DictionaryMemo dictionaries;
    const auto schema = arrow::ipc::ReadSchema(&source, &dictionaries);
    if (!schema.ok()) return Refused(schema.status());
    cells_.SetSchema(**schema, &wanted);
    for (const std::string& name : wanted) {
      const std::vector<std::string>& all = cells_.columns();
      if (std::count(all.begin(), all.end(), name) <= 1) continue;
      return absl::DataLossError(absl::StrCat("has two columns '", name, "': send one"));
    }
    if (!cells_.read_columns().empty()) return absl::OkStatus();
    return absl::DataLossError(
        absl::StrCat("has none of the columns ", absl::StrJoin(wanted, ", "),
                     " as text, numbers, times, or lists of them; its columns are ",
                     ShownText((*schema)->ToString(), kSchemaBytesShown)));
  }

  // Reads the next batch, or the end.
  absl::Status ReadBatch() {
    cells_.SetBatch(nullptr);
    std::shared_ptr<arrow::RecordBatch> batch;
    arrow::Status read = batches_->ReadNext(&batch);
    if (read.ok() && batch != nullptr) read = batch->ValidateFull();
    if (!read.ok()) return Refused(read);
    if (batch != nullptr) {
      cells_.SetBatch(std::move(batch));
      return absl::OkStatus();
    }
    ended_ = true;
    if (!has_end_) {
      return absl::DataLossError(
          "is cut short: the mark of the end of an Arrow stream is missing; close the writer "
          "before the message is sent");
    }
    const int64_t left = bytes_->size() - Place();
    if (left == 0) return absl::OkStatus();
    return absl::DataLossError(absl::StrCat(
        "has ", left, " bytes after the end of its Arrow stream: send one stream in a message"));
  }

  int64_t Place() const { return source_->Tell().ValueOr(0); }

  static constexpr size_t kSchemaBytesShown = 1000;

  ParquetMemory memory_;  // outlives its users below
  std::shared_ptr<arrow::Buffer> bytes_;
  std::unique_ptr<arrow::io::BufferReader> source_;
  bool has_end_ = false;
  std::shared_ptr<arrow::ipc::RecordBatchStreamReader> batches_;
  ArrowRows cells_;
  uint64_t row_ = 0;
  bool ended_ = false;
};

}  // namespace

absl::StatusOr<std::unique_ptr<TextTable>> OpenArrowStream(absl::string_view bytes,
                                                           const std::vector<std::string>& wanted,
                                                           const ListSeparators& separators) {
  if (absl::StartsWith(bytes, kArrowFileBegin)) {
    return absl::DataLossError("is an Arrow file: write an Arrow stream (pyarrow.ipc.new_stream)");
  }
  auto stream = std::make_unique<ArrowStream>(bytes.size(), separators);
  CISTERN_RETURN_IF_ERROR(stream->Open(bytes, wanted));
  return stream;
}

}  // namespace cistern::data
