// Writes predictions as a Parquet file: optional columns of text, then float columns.
#include <parquet/api/writer.h>

#include <exception>

#include "absl/strings/str_cat.h"
#include "worker/data/format/parquet_sink.h"
#include "worker/data/recipe/parquet_table.h"

namespace cistern {
namespace {

using parquet::Repetition;
using parquet::schema::GroupNode;
using parquet::schema::PrimitiveNode;

constexpr size_t kRowsPerGroup = 65536;

class Predictions : public ParquetPredictions {
 public:
  Predictions(std::string path, size_t kept, size_t predictions)
      : path_(std::move(path)), kept_(kept), predictions_(predictions) {}

  absl::Status Open(FileSystem& files, const std::vector<std::string>& kept,
                    const std::vector<std::string>& predictions) {
    parquet::schema::NodeVector fields;
    for (const std::string& name : kept) {
      fields.push_back(PrimitiveNode::Make(
          name, Repetition::OPTIONAL, parquet::LogicalType::String(), parquet::Type::BYTE_ARRAY));
    }
    for (const std::string& name : predictions) {
      fields.push_back(
          PrimitiveNode::Make(name, Repetition::REQUIRED, nullptr, parquet::Type::FLOAT));
    }
    CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<OutputFile> file, OutputFile::Create(files, path_));
    sink_ = std::make_shared<ParquetSink>(std::move(file), &sink_status_);
    return Guarded([&] {
      parquet::WriterProperties::Builder properties;
      properties.compression(parquet::Compression::SNAPPY);
      writer_ =
          parquet::ParquetFileWriter::Open(sink_,
                                           std::static_pointer_cast<GroupNode>(GroupNode::Make(
                                               "schema", Repetition::REQUIRED, fields)),
                                           properties.build());
    });
  }

  absl::Status Append(absl::Span<const std::string> kept,
                      absl::Span<const float> predictions) override {
    for (size_t i = 0; i < kept_.size(); ++i) kept_[i].push_back(kept[i]);
    for (size_t i = 0; i < predictions_.size(); ++i) predictions_[i].push_back(predictions[i]);
    return ++rows_ < kRowsPerGroup ? absl::OkStatus() : WriteGroup();
  }

  absl::Status Close() override {
    CISTERN_RETURN_IF_ERROR(WriteGroup());
    return Guarded([&] {
      writer_->Close();
      PARQUET_THROW_NOT_OK(sink_->Close());
    });
  }

 private:
  // Arrow reports errors as exceptions; none leaves this file.
  template <typename Work>
  absl::Status Guarded(const Work& work) const {
    try {
      work();
      return absl::OkStatus();
    } catch (const std::exception& error) {
      if (!sink_status_.ok()) return sink_status_;
      return absl::InternalError(absl::StrCat("cannot write ", path_, ": ", error.what()));
    }
  }

  absl::Status WriteGroup() {
    if (rows_ == 0) return absl::OkStatus();
    const absl::Status written = Guarded([&] {
      parquet::RowGroupWriter& group = *writer_->AppendRowGroup();
      for (std::vector<std::string>& column : kept_) WriteText(column, group);
      for (std::vector<float>& column : predictions_) {
        static_cast<parquet::FloatWriter*>(group.NextColumn())
            ->WriteBatch(static_cast<int64_t>(column.size()), nullptr, nullptr, column.data());
        column.clear();
      }
      group.Close();
    });
    rows_ = 0;
    return written;
  }

  static void WriteText(std::vector<std::string>& column, parquet::RowGroupWriter& group) {
    std::vector<int16_t> levels;
    std::vector<parquet::ByteArray> values;
    for (const std::string& text : column) {
      levels.push_back(text.empty() ? 0 : 1);
      if (!text.empty()) {
        values.emplace_back(static_cast<uint32_t>(text.size()),
                            reinterpret_cast<const uint8_t*>(text.data()));
      }
    }
    static_cast<parquet::ByteArrayWriter*>(group.NextColumn())
        ->WriteBatch(static_cast<int64_t>(levels.size()), levels.data(), nullptr, values.data());
    column.clear();
  }

  const std::string path_;
  absl::Status sink_status_;
  std::shared_ptr<ParquetSink> sink_;
  std::unique_ptr<parquet::ParquetFileWriter> writer_;
  size_t rows_ = 0;                             // of the group that is collected
  std::vector<std::vector<std::string>> kept_;  // by column
  std::vector<std::vector<float>> predictions_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ParquetPredictions>> CreateParquetPredictions(
    FileSystem& files, const std::string& path, const std::vector<std::string>& kept,
    const std::vector<std::string>& predictions) {
  auto table = std::make_unique<Predictions>(path, kept.size(), predictions.size());
  CISTERN_RETURN_IF_ERROR(table->Open(files, kept, predictions));
  return table;
}

}  // namespace cistern
