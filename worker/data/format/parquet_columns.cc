#include "worker/data/format/parquet_columns.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>

#include "absl/strings/str_join.h"
#include "common/base/json_depth.h"
#include "common/io/file.h"
#include "worker/data/format/key_weights.h"

namespace cistern::data {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kMaxMetadataBytes = uint64_t{64} << 20;

// For a file whose columns do not match the model's shape.
absl::Status Unfit(const std::string& text) {
  return absl::InvalidArgumentError(text);
}

// For a _metadata.json that is malformed or contradicts its Parquet file.
absl::Status Bad(const std::string& text) {
  return absl::DataLossError(text);
}

// Returns the column index of `entry`, checked against the file.
absl::StatusOr<int> PositionOf(const Json& entry, const std::string& at,
                               const ParquetOutline& file) {
  if (!entry.is_object() || !entry.contains("index") || !entry["index"].is_number_integer()) {
    return Bad(absl::StrCat(at, ": expected {\"col_name\": ..., \"index\": a whole number}"));
  }
  const int64_t index = entry["index"].get<int64_t>();
  if (index < 0 || index >= static_cast<int64_t>(file.names.size())) {
    return Bad(absl::StrCat(at, ".index is ", index, ", but ", file.path, " has ",
                            file.names.size(), " columns: count the columns of the file from 0"));
  }
  if (!entry.contains("col_name") || !entry["col_name"].is_string()) {
    return static_cast<int>(index);
  }
  const std::string name = entry["col_name"].get<std::string>();
  if (name == file.names[index]) return static_cast<int>(index);
  return Bad(absl::StrCat(at, " names column ", index, " '", name, "', but in ", file.path,
                          " it is '", file.names[index], "': use the column indices of the file"));
}

absl::StatusOr<std::vector<int>> PositionsOf(const Json& root, const char* key, uint64_t expected,
                                             const char* model_key, const std::string& path,
                                             const ParquetOutline& file) {
  std::vector<int> positions;
  const Json list = root.value(key, Json::array());
  if (!list.is_array()) return Bad(absl::StrCat(path, ": ", key, ": expected a list"));
  if (list.size() != expected) {
    return Unfit(absl::StrCat(path, ": ", key, " names ", list.size(), " columns, but ", model_key,
                              " of the model is ", expected, ": make the two agree"));
  }
  for (size_t i = 0; i < list.size(); ++i) {
    CISTERN_ASSIGN_OR_RETURN(const int position,
                             PositionOf(list[i], absl::StrCat(path, ": ", key, "[", i, "]"), file));
    positions.push_back(position);
  }
  return positions;
}

// Checks that file_stats lists the file with its number of rows. A non-empty file_stats without the
// file belongs to another data set.
absl::Status CheckRows(const Json& root, const std::string& path, const ParquetOutline& file) {
  const Json stats = root.value("file_stats", Json::array());
  if (!stats.is_array()) return Bad(absl::StrCat(path, ": file_stats: expected a list"));
  const std::string name = std::filesystem::path(file.path).filename();
  for (const Json& entry : stats) {
    if (!entry.is_object() || !entry.contains("file_name") || !entry["file_name"].is_string() ||
        !entry.contains("num_rows") || !entry["num_rows"].is_number_integer()) {
      return Bad(absl::StrCat(
          path, ": file_stats: expected {\"file_name\": ..., \"num_rows\": a whole number}"));
    }
    if (std::filesystem::path(entry["file_name"].get<std::string>()).filename() != name) continue;
    const int64_t rows = entry["num_rows"].get<int64_t>();
    if (rows == file.rows) return absl::OkStatus();
    return Bad(absl::StrCat(path, ": file_stats lists ", name, " with ", rows,
                            " rows, but the file has ", file.rows,
                            ": one of the two is from another data set"));
  }
  if (stats.empty()) return absl::OkStatus();
  return Bad(absl::StrCat(path, ": file_stats does not list ", name,
                          ", which is in the same folder: the list belongs to another data set, "
                          "or was not updated when the file was added"));
}

// Checks that no column is used twice: after a copy-and-paste error in a list, the model would
// train one feature twice and another not at all.
absl::Status CheckDistinct(const ParquetColumns& columns, const std::string& path,
                           const ParquetOutline& file) {
  const std::pair<const char*, const std::vector<int>*> lists[] = {{"labels", &columns.labels},
                                                                   {"conts", &columns.dense},
                                                                   {"cats", &columns.slots},
                                                                   {"weights", &columns.weights}};
  std::vector<std::string> used(file.names.size());
  for (const auto& [key, positions] : lists) {
    for (size_t i = 0; i < positions->size(); ++i) {
      const int position = (*positions)[i];
      const std::string here = absl::StrCat(key, "[", i, "]");
      if (!used[position].empty()) {
        return Bad(absl::StrCat(
            path, ": ", here, " names column ", position, " ('", file.names[position], "') of ",
            file.path, ", which ", used[position],
            " already names: use the index of another column, or duplicate the column in the "
            "file if both need it"));
      }
      used[position] = here;
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ParquetColumns> ParquetColumnsOfMetadata(const std::string& path,
                                                        const std::string& text,
                                                        const ParquetOutline& file,
                                                        const SampleShape& shape) {
  const bool is_deep = JsonDepth(text) > kMaxJsonDepth;  // useless, and unsafe to copy
  const Json root = is_deep ? Json() : Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!root.is_object()) return Bad(absl::StrCat(path, ": is not a JSON object"));
  CISTERN_RETURN_IF_ERROR(CheckRows(root, path, file));
  ParquetColumns columns;
  CISTERN_ASSIGN_OR_RETURN(columns.labels,
                           PositionsOf(root, "labels", shape.label_dim, "label_dim", path, file));
  CISTERN_ASSIGN_OR_RETURN(columns.dense,
                           PositionsOf(root, "conts", shape.dense_dim, "dense_dim", path, file));
  CISTERN_ASSIGN_OR_RETURN(columns.slots, PositionsOf(root, "cats", KeySlots(shape),
                                                      "the sum of sparse[].slot_num", path, file));
  CISTERN_ASSIGN_OR_RETURN(columns.weights,
                           PositionsOf(root, "weights", WeightSlots(shape),
                                       "the number of slots of cistern.key_weights", path, file));
  CISTERN_RETURN_IF_ERROR(CheckDistinct(columns, path, file));
  return columns;
}

absl::StatusOr<ParquetColumns> FindParquetColumns(const ParquetOutline& file,
                                                  const SampleShape& shape) {
  const std::filesystem::path beside =
      std::filesystem::path(file.path).parent_path() / "_metadata.json";
  std::error_code error;
  if (std::filesystem::exists(beside, error)) {
    CISTERN_ASSIGN_OR_RETURN(const std::string text, ReadFile(beside.string(), kMaxMetadataBytes));
    return ParquetColumnsOfMetadata(beside.string(), text, file, shape);
  }
  const uint64_t slots = KeySlots(shape), weights = WeightSlots(shape);
  const size_t expected = size_t{shape.label_dim} + shape.dense_dim + slots + weights;
  if (file.names.size() != expected) {
    return Unfit(absl::StrCat(file.path, " has ", file.names.size(), " columns (",
                              absl::StrJoin(file.names, ", "), "), but the model has ",
                              shape.label_dim, " labels, ", shape.dense_dim, " dense features and ",
                              slots, " slots",
                              weights > 0 ? absl::StrCat(", and ", weights,
                                                         " of them with weights of keys "
                                                         "(cistern.key_weights)")
                                          : "",
                              ": list the columns in a _metadata.json in the same folder"));
  }
  ParquetColumns columns;
  int next = 0;
  for (uint32_t i = 0; i < shape.label_dim; ++i) columns.labels.push_back(next++);
  for (uint32_t i = 0; i < shape.dense_dim; ++i) columns.dense.push_back(next++);
  for (uint64_t i = 0; i < slots; ++i) columns.slots.push_back(next++);
  for (uint64_t i = 0; i < weights; ++i) columns.weights.push_back(next++);
  return columns;
}

}  // namespace cistern::data
