#include "worker/export/hugectr/dense_weights.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "absl/strings/str_format.h"
#include "common/base/json_depth.h"
#include "common/io/new_file.h"

namespace cistern {
namespace {

constexpr size_t kChunkFloats = size_t{1} << 18;

size_t SumOfParameters(const std::vector<model::LayerSummary>& layers) {
  size_t sum = 0;
  for (const model::LayerSummary& layer : layers) sum += layer.parameters;
  return sum;
}

// "layer 'fc1' (layers[4], InnerProduct), weights 0 to 99": the layer that holds parameter `index`.
std::string LayerAt(const std::vector<model::LayerSummary>& layers, size_t index) {
  size_t first = 0;
  for (const model::LayerSummary& layer : layers) {
    if (index < first + layer.parameters) {
      return absl::StrCat("layer '", layer.name, "' (", layer.path, ", ", layer.type,
                          "), which has weights ", first, " to ", first + layer.parameters - 1);
    }
    first += layer.parameters;
  }
  return "no layer";
}

absl::Status WrongSize(const std::string& path, uint64_t bytes,
                       const std::vector<model::LayerSummary>& layers, size_t columns) {
  const size_t count = SumOfParameters(layers), there = bytes / sizeof(float);
  const std::string end = there < count * columns
                              ? absl::StrCat("it ends at number ", there, ", within ",
                                             LayerAt(layers, there % std::max<size_t>(count, 1)))
                              : absl::StrCat("it continues after the last layer for ",
                                             bytes - count * columns * sizeof(float), " bytes");
  return WithOptions(absl::InvalidArgumentError(absl::StrCat(
                         path, ": ", bytes, " bytes; the model's layers need ",
                         count * columns * sizeof(float), " (", count, " weights",
                         columns > 1 ? absl::StrCat(" with ", columns, " numbers each") : "",
                         "): ", end, ". Use the model file of the training run")),
                     {"train.dry_run"});
}

// The statistics of a BatchNorm layer.
const char* kParts[] = {"mean", "var"};
// The other type of layer that has them.
constexpr char kDice[] = "PReLU_Dice";

}  // namespace

std::string NtpPathOf(const std::string& dense_path) {
  return dense_path + ".ntp.json";
}

std::vector<float> ColumnOf(absl::Span<const float> values, size_t columns, size_t column) {
  std::vector<float> cells;
  cells.reserve(values.size() / columns);
  for (size_t i = column; i < values.size(); i += columns) cells.push_back(values[i]);
  return cells;
}

absl::Status WriteFloats(FileSystem& files, const std::string& path,
                         absl::Span<const float> cells) {
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<NewFile> file, NewFile::Create(files, path));
  for (size_t first = 0; first < cells.size(); first += kChunkFloats) {
    const absl::Span<const float> chunk = cells.subspan(first, kChunkFloats);
    CISTERN_RETURN_IF_ERROR(file->Append(absl::string_view(
        reinterpret_cast<const char*>(chunk.data()), chunk.size() * sizeof(float))));
  }
  return file->Close();
}

absl::StatusOr<std::vector<float>> ReadFloats(FileSystem& files, const std::string& path,
                                              const std::vector<model::LayerSummary>& layers,
                                              size_t columns) {
  absl::StatusOr<std::unique_ptr<ReadableFile>> file = files.Open(path);
  if (absl::IsNotFound(file.status())) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": no such file; paths are relative to the current folder"));
  }
  if (!file.ok()) return file.status();
  if (columns == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        path,
        ": the model's optimizer keeps no state: leave out solver.dense_opt_states_file and "
        "solver.sparse_opt_states_file"));
  }
  const size_t count = SumOfParameters(layers);
  const uint64_t row = columns * sizeof(float), bytes = (*file)->bytes();
  if (bytes % row != 0 || bytes / row != count) {
    return WrongSize(path, (*file)->bytes(), layers, columns);
  }
  std::vector<float> cells(count * columns);
  CISTERN_RETURN_IF_ERROR(
      (*file)->Read(0, cells.size() * sizeof(float), reinterpret_cast<char*>(cells.data())));
  for (size_t i = 0; i < cells.size(); ++i) {
    if (std::isfinite(cells[i])) continue;
    return absl::DataLossError(absl::StrCat(path, ": number ", i, " is not finite; it belongs to ",
                                            LayerAt(layers, i % count),
                                            ": use a file of an earlier iteration"));
  }
  return cells;
}

std::string FormatNtp(const std::vector<model::LayerSummary>& layers,
                      absl::Span<const float> running) {
  std::string text;
  size_t next = 0;
  for (const model::LayerSummary& layer : layers) {
    if (layer.running == 0) continue;
    absl::StrAppend(&text, text.empty() ? "\n" : ",\n", "    {\n      \"type\": \"", layer.type,
                    "\"");
    for (const char* part : kParts) {
      absl::StrAppend(&text, ",\n      \"", part, "\": [");
      for (size_t i = 0; i < layer.running / 2; ++i) {
        absl::StrAppendFormat(&text, "%s%.9g", i == 0 ? "" : ", ", running[next++]);
      }
      text += "]";
    }
    text += "\n    }";
  }
  return absl::StrCat("{\n  \"layers\": [", text, "\n  ]\n}\n");
}

absl::StatusOr<std::vector<float>> ParseNtp(const std::string& text, const std::string& path,
                                            const std::vector<model::LayerSummary>& layers) {
  const auto damaged = [&](const std::string& what) {
    return absl::DataLossError(
        absl::StrCat(path, ": ", what,
                     ": copy it again, or remove it to start with mean 0 and "
                     "variance 1"));
  };
  const bool is_deep = JsonDepth(text) > kMaxJsonDepth;  // invalid, and unsafe to copy
  const auto json =
      is_deep ? nlohmann::json() : nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("layers") || !json["layers"].is_array()) {
    return damaged("is not a JSON object with an array \"layers\"");
  }
  std::vector<nlohmann::json> found;
  for (const nlohmann::json& one : json["layers"]) {
    const nlohmann::json type = one.is_object() ? one.value("type", nlohmann::json()) : nullptr;
    if (type == "BatchNorm" || type == kDice) found.push_back(one);
  }
  std::vector<float> running;
  size_t index = 0;
  for (const model::LayerSummary& layer : layers) {
    if (layer.running == 0) continue;
    const std::string site = absl::StrCat("layer '", layer.name, "' (", layer.path, ")");
    const bool is_found = index < found.size() && found[index]["type"] == layer.type;
    if (!is_found && layer.type == kDice) {  // a file of HugeCTR's own
      const std::vector<float> first = FirstRunning({layer});
      running.insert(running.end(), first.begin(), first.end());
      continue;
    }
    if (!is_found) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": holds ", found.size(), " BatchNorm layers; ", site,
                       " of the model is not among them: use the model file of the training run"));
    }
    const nlohmann::json& one = found[index++];
    for (const char* part : kParts) {
      const nlohmann::json cells = one.value(part, nlohmann::json());
      if (!cells.is_array()) return damaged(absl::StrCat(site, ": no array \"", part, "\""));
      if (cells.size() != layer.running / 2) {
        return absl::InvalidArgumentError(absl::StrCat(
            path, ": \"", part, "\" has ", cells.size(), " numbers, but ", site, " has ",
            layer.running / 2, " columns: use the model file of the training run"));
      }
      for (const nlohmann::json& cell : cells) {
        const double x = cell.is_number() ? cell.get<double>() : NAN;
        running.push_back(static_cast<float>(x));
        if (std::isfinite(running.back()) && (part == kParts[0] || x >= 0)) continue;
        return damaged(absl::StrCat(site, ": \"", part, "\" holds ", cell.dump(),
                                    ", which is not a valid statistic"));
      }
    }
  }
  if (index < found.size()) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": holds ", found.size(),
                                                   " BatchNorm layers, the model has ", index,
                                                   ": use the model file of the training run"));
  }
  return running;
}

std::vector<float> FirstRunning(const std::vector<model::LayerSummary>& layers) {
  std::vector<float> running;
  for (const model::LayerSummary& layer : layers) {
    running.insert(running.end(), layer.running / 2, 0.0f);
    running.insert(running.end(), layer.running / 2, 1.0f);
  }
  return running;
}

}  // namespace cistern
