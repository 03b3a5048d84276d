// Writes predictions as a Parquet file: optional columns of text, then float columns.
#include "worker/data/format/parquet_output.h"
#include "worker/data/recipe/parquet_table.h"

namespace cistern::data {
namespace {

using parquet::Repetition;
using parquet::schema::PrimitiveNode;

constexpr size_t kRowsPerGroup = 65536;

class Predictions : public ParquetPredictions {
 public:
  Predictions(std::unique_ptr<ParquetOutput> file, size_t kept, size_t predictions)
      : file_(std::move(file)), kept_(kept), predictions_(predictions) {}

  absl::Status Append(absl::Span<const std::string> kept,
                      absl::Span<const float> predictions) override {
    for (size_t i = 0; i < kept_.size(); ++i) kept_[i].push_back(kept[i]);
    for (size_t i = 0; i < predictions_.size(); ++i) predictions_[i].push_back(predictions[i]);
    return ++rows_ < kRowsPerGroup ? absl::OkStatus() : WriteGroup();
  }

  absl::Status Close() override {
    CISTERN_RETURN_IF_ERROR(WriteGroup());
    return file_->Close();
  }

 private:
  absl::Status WriteGroup() {
    if (rows_ == 0) return absl::OkStatus();
    const absl::Status written = file_->AppendGroup([&](parquet::RowGroupWriter& group) {
      for (std::vector<std::string>& column : kept_) WriteText(column, group);
      for (std::vector<float>& column : predictions_) {
        static_cast<parquet::FloatWriter*>(group.NextColumn())
            ->WriteBatch(static_cast<int64_t>(column.size()), nullptr, nullptr, column.data());
        column.clear();
      }
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

  const std::unique_ptr<ParquetOutput> file_;
  size_t rows_ = 0;                             // of the group that is collected
  std::vector<std::vector<std::string>> kept_;  // by column
  std::vector<std::vector<float>> predictions_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ParquetPredictions>> CreateParquetPredictions(
    FileSystem& files, const std::string& path, const std::vector<std::string>& kept,
    const std::vector<std::string>& predictions) {
  parquet::schema::NodeVector columns;
  for (const std::string& name : kept) {
    columns.push_back(PrimitiveNode::Make(
        name, Repetition::OPTIONAL, parquet::LogicalType::String(), parquet::Type::BYTE_ARRAY));
  }
  for (const std::string& name : predictions) {
    columns.push_back(
        PrimitiveNode::Make(name, Repetition::REQUIRED, nullptr, parquet::Type::FLOAT));
  }
  CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<ParquetOutput> file,
                           ParquetOutput::Create(files, path, columns));
  return std::make_unique<Predictions>(std::move(file), kept.size(), predictions.size());
}

}  // namespace cistern::data
