// Reader of the Data layer.
#include <algorithm>
#include <initializer_list>
#include <set>

#include "worker/data/format/key_weights.h"
#include "worker/data/format/norm_format.h"
#include "worker/data/format/slot_sizes.h"
#include "worker/model/config/config_readers.h"

namespace cistern::model {
namespace {

// The smallest of the bounds that are not 0, or 0 if all are.
uint64_t LeastBound(std::initializer_list<uint64_t> bounds) {
  uint64_t least = 0;
  for (const uint64_t bound : bounds) {
    if (bound > 0 && (least == 0 || bound < least)) least = bound;
  }
  return least;
}

// Of an input whose slot_num has been read.
absl::Status ReadSequences(const Json& json, const std::string& path, SparseInputConfig* input) {
  constexpr uint64_t kMaxPlaces = 1 << 20;
  data::SequenceSlots& sequences = input->sequences;
  if (json.contains("sequence_lengths")) {
    const std::vector<uint64_t> lengths = json.at("sequence_lengths");
    if (lengths.size() != 1 && lengths.size() != input->slot_num) {
      return ConfigError(
          path + ".sequence_lengths",
          absl::StrCat("has ", lengths.size(), " numbers, but the input has ", input->slot_num,
                       " slots: give one for all, or one for each"));
    }
    sequences.lengths.assign(lengths.begin(), lengths.end());
    if (lengths.size() == 1) sequences.lengths.resize(input->slot_num, sequences.lengths[0]);
    const auto is_pooled = [](uint32_t length) { return length == 0; };
    if (std::all_of(sequences.lengths.begin(), sequences.lengths.end(), is_pooled)) {
      sequences.lengths.clear();
    }
    const uint64_t places = PlacesOf(sequences, input->slot_num);
    if (places > kMaxPlaces) {
      return ConfigError(
          path + ".sequence_lengths",
          absl::StrCat("add up to ", places, " places; an input has at most ", kMaxPlaces));
    }
  }
  sequences.keeps_last = json.at("sequence_keeps") == "last";
  sequences.reversed = json.at("sequence_reversed");
  input->length_top = json.value("length_top", "");
  if (sequences.any()) return absl::OkStatus();
  const char* const useless = !input->length_top.empty() ? "length_top"
                              : sequences.reversed       ? "sequence_reversed"
                              : !sequences.keeps_last    ? "sequence_keeps"
                                                         : nullptr;
  if (useless == nullptr) return absl::OkStatus();
  return ConfigError(absl::StrCat(path, ".", useless),
                     "no slot of this input is a sequence: set sequence_lengths, or remove it");
}

absl::StatusOr<SparseInputConfig> ReadSparse(const Json& json, const std::string& path) {
  SparseInputConfig input;
  input.top = json.at("top");
  input.type = json.at("type");
  input.slot_num = json.at("slot_num");
  uint64_t of_slots = 0;  // HugeCTR 3.x
  if (json.contains("nnz_per_slot")) {
    const std::vector<uint64_t> nnz = json.at("nnz_per_slot");
    if (nnz.size() != 1 && nnz.size() != input.slot_num) {
      return ConfigError(path + ".nnz_per_slot",
                         absl::StrCat("has ", nnz.size(), " numbers, but the input has ",
                                      input.slot_num, " slots: give one for all, or one for each"));
    }
    for (const uint64_t one : nnz) of_slots += one;
    if (nnz.size() == 1) of_slots *= input.slot_num;
  }
  // HugeCTR 2.3 applies both bounds to a sample:
  // min(max_nnz * slot_num, max_feature_num_per_sample).
  const uint64_t bound =
      LeastBound({json.at("max_feature_num_per_sample").get<uint64_t>(),
                  json.at("max_nnz").get<uint64_t>() * input.slot_num, of_slots});
  input.max_feature_num = static_cast<uint32_t>(std::min<uint64_t>(bound, UINT32_MAX));
  CISTERN_RETURN_IF_ERROR(ReadSequences(json, path, &input));
  return input;
}

absl::Status CheckTops(const DataConfig& data, const std::string& path) {
  std::set<std::string> tops;
  std::vector<std::string> all = {data.label_top};
  if (!data.dense_top.empty()) all.push_back(data.dense_top);
  for (const SparseInputConfig& input : data.sparse) {
    all.push_back(input.top);
    if (!input.length_top.empty()) all.push_back(input.length_top);
  }
  for (const std::string& top : all) {
    if (top.empty()) return ConfigError(path, "a top is an empty string");
    if (!tops.insert(top).second) {
      return ConfigError(path, absl::StrCat("two tops are named '", top, "'"));
    }
  }
  return absl::OkStatus();
}

// Reads keys that only some formats use.
void ReadFormatKeys(const Json& json, const std::string& path, DataConfig* data, Notes* notes) {
  const auto ignored = [&](const char* key, bool read) {
    if (read || !json.contains(key)) return;
    notes->push_back(absl::StrCat(path, ".", key, ": ignored: the format ",
                                  data::FormatName(data->format), " does not use it"));
  };
  const bool raw = data->format == data::DataFormat::kRaw;
  for (const char* key : {"num_samples", "eval_num_samples", "float_label_dense"}) {
    ignored(key, raw);
  }
  ignored("slot_size_array", !data::HoldsKeyLists(data->format));
  // HugeCTR requires the key in every format but uses it only in Norm.
  if (data->check != data::NormCheck::kNone && data->format != data::DataFormat::kNorm) {
    notes->push_back(absl::StrCat(path, ".check: ignored: ", data::FormatName(data->format),
                                  " files carry no checksums"));
    data->check = data::NormCheck::kNone;
  }
  if (raw) {
    data->num_samples = json.value("num_samples", uint64_t{0});
    data->eval_num_samples = json.value("eval_num_samples", uint64_t{0});
    data->float_label_dense = json.value("float_label_dense", false);
  }
  if (!data::HoldsKeyLists(data->format) && json.contains("slot_size_array")) {
    data->slot_sizes = json.at("slot_size_array").get<std::vector<uint64_t>>();
  }
}

// Checks the bounds of the formats that hold one key per slot.
absl::Status CheckOneHot(const DataConfig& data, const std::string& path) {
  if (data::HoldsKeyLists(data.format)) return absl::OkStatus();
  for (size_t i = 0; i < data.sparse.size(); ++i) {
    const SparseInputConfig& input = data.sparse[i];
    if (input.max_feature_num == 0 || input.max_feature_num >= input.slot_num) continue;
    return ConfigError(
        absl::StrCat(path, ".sparse[", i, "].max_feature_num_per_sample"),
        absl::StrCat("is ", input.max_feature_num, ", but a sample of a ",
                     data::FormatName(data.format), " file holds one key in each of the ",
                     input.slot_num, " slots: raise it to ", input.slot_num));
  }
  return AddContext(data::SlotSizes::Create(ShapeOf(data), data.slot_sizes).status(), path);
}

// The number of batches to cache; `true` means all of them.
uint64_t ReadCachedBatches(const Json& json) {
  if (!json.contains("cache_eval_data")) return 0;
  const Json& value = json.at("cache_eval_data");
  if (value.is_boolean()) return value.get<bool>() ? UINT64_MAX : 0;
  return value;
}

}  // namespace

absl::Status ReadData(const Json& json, const std::string& path, DataConfig* data, Notes* notes) {
  CISTERN_ASSIGN_OR_RETURN(data->format, data::FormatOfName(json.at("format").get<std::string>()));
  for (size_t i = 0; i < json.at("sparse").size(); ++i) {
    CISTERN_ASSIGN_OR_RETURN(
        SparseInputConfig input,
        ReadSparse(json.at("sparse")[i], absl::StrCat(path, ".sparse[", i, "]")));
    data->sparse.push_back(std::move(input));
  }
  data->cache_eval_batches = ReadCachedBatches(json);
  ReadFormatKeys(json, path, data, notes);
  CISTERN_RETURN_IF_ERROR(CheckOneHot(*data, path));
  return CheckTops(*data, path);
}

absl::Status MarkKeyWeights(const std::vector<std::string>& inputs, DataConfig* data) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string path = absl::StrCat("cistern.key_weights[", i, "]");
    const auto named = [&](const SparseInputConfig& input) { return input.top == inputs[i]; };
    const auto input = std::find_if(data->sparse.begin(), data->sparse.end(), named);
    if (input == data->sparse.end()) {
      return ConfigError(path, absl::StrCat("layers[0].sparse has no top '", inputs[i], "'"));
    }
    input->key_weights = true;
  }
  return absl::OkStatus();
}

absl::Status CheckColumns(const DataConfig& data, const data::TarColumns& columns, Notes* notes) {
  if (data.format != data::DataFormat::kTar) {
    if (columns != data::TarColumns{}) {
      notes->push_back(absl::StrCat("cistern.columns: ignored: the format ",
                                    data::FormatName(data.format), " does not use it"));
    }
    return absl::OkStatus();
  }
  const auto check = [](const char* name, const std::vector<std::string>& names, uint64_t wanted,
                        const char* what) {
    if (names.empty() || names.size() == wanted) return absl::OkStatus();
    return ConfigError(
        absl::StrCat("cistern.columns.", name),
        absl::StrCat("names ", names.size(), " fields, but layers[0] has ", wanted, " ", what));
  };
  CISTERN_RETURN_IF_ERROR(
      check("label", columns.label, ShapeOf(data).label_dim,
            data.weighted ? "labels, the weight (cistern.sample_weights) included" : "labels"));
  CISTERN_RETURN_IF_ERROR(check("dense", columns.dense, data.dense_dim, "dense features"));
  CISTERN_RETURN_IF_ERROR(check("slots", columns.slots, data::SlotNum(ShapeOf(data)), "slots"));
  return check("weights", columns.weights, data::WeightSlots(ShapeOf(data)),
               "slots whose keys have weights (cistern.key_weights)");
}

data::SampleShape ShapeOf(const DataConfig& data) {
  data::SampleShape shape;
  shape.label_dim = data.label_dim + (data.weighted ? 1 : 0);
  shape.weighted = data.weighted;
  shape.dense_dim = data.dense_dim;
  for (const SparseInputConfig& input : data.sparse) {
    shape.slot_nums.push_back(input.slot_num);
    shape.max_keys.push_back(input.max_feature_num);
    shape.key_weights.push_back(input.key_weights);
  }
  if (!data::HasKeyWeights(shape)) shape.key_weights.clear();
  return shape;
}

data::DataSetOptions DataSetOf(const ModelConfig& config, const std::string& source) {
  const DataConfig& data = config.data;
  data::DataSetOptions options;
  options.format = data.format;
  options.source = source;
  options.shape = ShapeOf(data);
  options.check = data.check;
  options.wide_keys = config.solver.wide_keys;
  options.float_label_dense = data.float_label_dense;
  options.slot_sizes = data.slot_sizes;
  options.columns = config.cistern.columns;
  options.slot_starts.resize(data.sparse.size());
  for (const EmbeddingConfig& embedding : config.embeddings) {
    std::vector<Key>& starts = options.slot_starts[embedding.input];
    if (!embedding.one_hot || !starts.empty() || embedding.key_space.sizes.empty()) continue;
    starts.push_back(0);
    for (const uint64_t size : embedding.key_space.sizes) starts.push_back(starts.back() + size);
  }
  return options;
}

}  // namespace cistern::model
