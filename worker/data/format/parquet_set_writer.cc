// Writes Parquet files with a _metadata.json for parquet_reader.h: float columns label, I1, I2,
// ..., int64 columns C1, C2, ..., and float columns W1, W2, ... of slots with weights of keys, all
// required, compressed with snappy.
#include <parquet/api/writer.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "absl/strings/str_format.h"
#include "common/base/check.h"
#include "common/io/new_file.h"
#include "worker/data/format/file_list.h"
#include "worker/data/format/key_weights.h"
#include "worker/data/format/norm_format.h"
#include "worker/data/format/parquet_output.h"
#include "worker/data/format/sample_set_writer.h"

namespace cistern::data {
namespace {

constexpr uint64_t kRowsPerGroup = 65536;

using parquet::Repetition;
using parquet::schema::PrimitiveNode;

class ParquetSet : public SampleSetWriter {
 public:
  ParquetSet(FileSystem& files, std::string folder, const SampleShape& shape,
             uint64_t samples_per_file)
      : file_system_(files),
        folder_(std::move(folder)),
        shape_(shape),
        samples_per_file_(samples_per_file) {
    CISTERN_CHECK(samples_per_file > 0);
    rows_.Reset(shape.slot_nums.size());
    for (uint32_t i = 0; i < shape.label_dim; ++i) {
      names_.push_back(shape.label_dim == 1 ? "label" : absl::StrCat("label", i + 1));
    }
    for (uint32_t i = 0; i < shape.dense_dim; ++i) names_.push_back(absl::StrCat("I", i + 1));
    for (uint64_t i = 0; i < SlotNum(shape); ++i) names_.push_back(absl::StrCat("C", i + 1));
    for (uint64_t i = 0; i < WeightSlots(shape); ++i) names_.push_back(absl::StrCat("W", i + 1));
  }

  absl::Status Append(const SampleBlock& block) override {
    for (size_t done = 0; done < block.size;) {
      const uint64_t room = std::min(kRowsPerGroup, samples_per_file_ - file_rows_) - rows_.size;
      const size_t count = static_cast<size_t>(std::min<uint64_t>(block.size - done, room));
      rows_.Append(block, done, count);
      done += count;
      if (count < room) continue;
      CISTERN_RETURN_IF_ERROR(WriteGroup());
      if (file_rows_ == samples_per_file_) CISTERN_RETURN_IF_ERROR(CloseFile());
    }
    return absl::OkStatus();
  }

  absl::Status Close() override {
    if (rows_.size > 0 || files_.empty()) CISTERN_RETURN_IF_ERROR(WriteGroup());
    CISTERN_RETURN_IF_ERROR(CloseFile());
    CISTERN_RETURN_IF_ERROR(WriteMetadata());
    std::vector<std::string> names;
    for (const auto& [name, rows] : files_) names.push_back(name);
    return WriteFileList(file_system_, folder_ + "/file_list.txt", names);
  }

  std::string source() const override { return "file_list.txt"; }

 private:
  // Indices among the columns.
  size_t first_slot() const { return size_t{shape_.label_dim} + shape_.dense_dim; }
  size_t first_weight() const { return first_slot() + SlotNum(shape_); }

  absl::Status OpenFile() {
    files_.emplace_back(absl::StrFormat("part_%d.parquet", files_.size()), 0);
    const size_t numbers = first_slot(), weights = first_weight();
    parquet::schema::NodeVector columns;
    for (size_t i = 0; i < names_.size(); ++i) {
      columns.push_back(PrimitiveNode::Make(
          names_[i], Repetition::REQUIRED, nullptr,
          i < numbers || i >= weights ? parquet::Type::FLOAT : parquet::Type::INT64));
    }
    CISTERN_ASSIGN_OR_RETURN(
        file_, ParquetOutput::Create(file_system_, absl::StrCat(folder_, "/", files_.back().first),
                                     columns));
    return absl::OkStatus();
  }

  // Writes rows_ as a row group.
  absl::Status WriteGroup() {
    for (size_t i = 0; i < rows_.sparse.size(); ++i) {
      const SparseColumn& column = rows_.sparse[i];
      for (size_t k = 0; k < column.offsets.size(); ++k) {
        if (column.offsets[k] == k) continue;
        return absl::OutOfRangeError("a slot of a Parquet file must hold exactly one key");
      }
      if (std::all_of(column.weights.begin(), column.weights.end(),
                      [](float weight) { return std::isfinite(weight); })) {
        continue;
      }
      return absl::DataLossError(absl::StrCat("input ", i, ": a weight of a key is not finite"));
    }
    if (file_ == nullptr) CISTERN_RETURN_IF_ERROR(OpenFile());
    if (rows_.size > 0) {
      CISTERN_RETURN_IF_ERROR(
          file_->AppendGroup([&](parquet::RowGroupWriter& group) { WriteColumns(group); }));
    }
    file_rows_ += rows_.size;
    rows_.Reset(shape_.slot_nums.size());
    return absl::OkStatus();
  }

  void WriteColumns(parquet::RowGroupWriter& group) const {
    const auto floats = [&](const std::vector<float>& values, size_t width) {
      std::vector<float> column(rows_.size);
      for (size_t i = 0; i < width; ++i) {
        for (size_t row = 0; row < rows_.size; ++row) column[row] = values[row * width + i];
        static_cast<parquet::FloatWriter*>(group.NextColumn())
            ->WriteBatch(static_cast<int64_t>(column.size()), nullptr, nullptr, column.data());
      }
    };
    floats(rows_.label, shape_.label_dim);
    floats(rows_.dense, shape_.dense_dim);
    for (size_t input = 0; input < rows_.sparse.size(); ++input) {
      const size_t slots = shape_.slot_nums[input];
      std::vector<int64_t> column(rows_.size);
      for (size_t slot = 0; slot < slots; ++slot) {
        for (size_t row = 0; row < rows_.size; ++row) {
          column[row] = static_cast<int64_t>(rows_.sparse[input].keys[row * slots + slot]);
        }
        static_cast<parquet::Int64Writer*>(group.NextColumn())
            ->WriteBatch(static_cast<int64_t>(column.size()), nullptr, nullptr, column.data());
      }
    }
    for (size_t input = 0; input < shape_.key_weights.size(); ++input) {
      if (!shape_.key_weights[input]) continue;
      const std::vector<float>& weights = rows_.sparse[input].weights;
      const size_t slots = shape_.slot_nums[input];
      floats(weights.empty() ? std::vector<float>(rows_.size * slots, 1.0f) : weights, slots);
    }
  }

  absl::Status CloseFile() {
    if (file_ == nullptr) return absl::OkStatus();
    CISTERN_RETURN_IF_ERROR(file_->Close());
    file_.reset();
    files_.back().second = file_rows_;
    file_rows_ = 0;
    return absl::OkStatus();
  }

  absl::Status WriteMetadata() const {
    nlohmann::ordered_json json;
    json["file_stats"] = nlohmann::ordered_json::array();
    for (const auto& [name, rows] : files_) {
      json["file_stats"].push_back({{"file_name", name}, {"num_rows", rows}});
    }
    for (const char* key : {"cats", "conts", "labels"}) json[key] = nlohmann::ordered_json::array();
    if (HasKeyWeights(shape_)) json["weights"] = nlohmann::ordered_json::array();
    for (size_t i = 0; i < names_.size(); ++i) {
      const char* key = i < shape_.label_dim ? "labels"
                        : i < first_slot()   ? "conts"
                        : i < first_weight() ? "cats"
                                             : "weights";
      json[key].push_back({{"col_name", names_[i]}, {"index", i}});
    }
    return WriteWhole(file_system_, folder_ + "/_metadata.json", json.dump() + "\n");
  }

  FileSystem& file_system_;
  const std::string folder_;
  const SampleShape shape_;
  const uint64_t samples_per_file_;
  std::vector<std::string> names_;                       // of the columns
  std::vector<std::pair<std::string, uint64_t>> files_;  // names and numbers of rows
  std::unique_ptr<ParquetOutput> file_;                  // files_.back(); null between files
  uint64_t file_rows_ = 0;                               // written to file_
  SampleBlock rows_;                                     // of the next row group
};

}  // namespace

absl::StatusOr<std::unique_ptr<SampleSetWriter>> CreateParquetSetWriter(
    FileSystem& files, const std::string& folder, const DataSetOptions& options,
    uint64_t samples_per_file) {
  return std::make_unique<ParquetSet>(files, folder, options.shape, samples_per_file);
}

}  // namespace cistern::data
