#include "serve/library/cistern_serve.h"

#include <algorithm>
#include <atomic>
#include <new>
#include <nlohmann/json.hpp>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "common/base/thread_limit.h"
#include "serve/predictor/open_predictor.h"
#include "worker/data/recipe/text_rows.h"

struct cistern_model {
  std::unique_ptr<cistern::serve::Predictor> predictor;
  std::atomic<uint64_t> requests{0}, refused{0}, samples{0}, unseen{0};
};

namespace cistern::serve {
namespace {

// Copies as much of `text` as fits, with a zero byte.
void CopyText(absl::string_view text, char* out, size_t size) {
  if (out == nullptr || size == 0) return;
  const size_t length = std::min(text.size(), size - 1);
  std::copy_n(text.data(), length, out);
  out[length] = '\0';
}

int CodeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return CISTERN_OK;
    case absl::StatusCode::kInvalidArgument:
      return CISTERN_BAD_REQUEST;
    case absl::StatusCode::kNotFound:
      return CISTERN_NOT_FOUND;
    case absl::StatusCode::kDataLoss:
      return CISTERN_CORRUPT;
    default:
      return CISTERN_FAILED;
  }
}

int Report(const absl::Status& status, char* error, size_t error_size) {
  CopyText(status.message(), error, error_size);
  return CodeOf(status);
}

absl::Status ReadOption(absl::string_view word, PredictorOptions* options) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(word, absl::MaxSplits('=', 1));
  uint64_t number = 0;
  const bool is_number = absl::SimpleAtoi(parts.second, &number);
  const auto within = [&](uint64_t least, uint64_t most) {
    return is_number && number >= least && number <= most;
  };
  if (parts.first == "threads" && within(1, kMaxThreads)) {
    options->threads = static_cast<int>(number);
  } else if (parts.first == "max_samples" && within(1, 1 << 24)) {
    options->max_samples = number;
  } else if (parts.first == "poll_ms" && within(0, 86'400'000)) {
    options->poll_ms = static_cast<int>(number);
  } else if (parts.first == "verify" && within(0, 1)) {
    options->verify = number == 1;
  } else if (parts.first == "fall_back" && within(0, 1)) {
    options->fall_back = number == 1;
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat("option '", word, "': expected threads=1..", kMaxThreads,
                     ", max_samples=1..16777216, "
                     "poll_ms=0..86400000, verify=0|1 or fall_back=0|1"));
  }
  return absl::OkStatus();
}

absl::StatusOr<PredictorOptions> ReadOptions(const char* text) {
  PredictorOptions options;
  if (text == nullptr) return options;
  for (const absl::string_view word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    CISTERN_RETURN_IF_ERROR(ReadOption(word, &options));
  }
  return options;
}

absl::Status NullPointer(const char* what) {
  return absl::InvalidArgumentError(absl::StrCat(what, " is NULL"));
}

// weights: of each input; null: there are none.
absl::StatusOr<PredictRequest> RequestOf(const cistern_batch* batch,
                                         const cistern_weights* weights) {
  if (batch == nullptr) return NullPointer("batch");
  PredictRequest request;
  request.samples = batch->samples;
  if (batch->dense == nullptr && batch->dense_num > 0) return NullPointer("batch.dense");
  request.dense = absl::MakeConstSpan(batch->dense, batch->dense_num);
  if (batch->inputs == nullptr && batch->input_num > 0) return NullPointer("batch.inputs");
  for (size_t i = 0; i < batch->input_num; ++i) {
    const cistern_input& input = batch->inputs[i];
    if (input.keys == nullptr && input.key_num > 0) return NullPointer("keys of an input");
    if (input.offsets == nullptr) return NullPointer("offsets of an input");
    request.inputs.push_back({absl::MakeConstSpan(input.keys, input.key_num),
                              absl::MakeConstSpan(input.offsets, input.offset_num)});
    if (weights == nullptr) continue;
    if (weights[i].weights == nullptr && weights[i].weight_num > 0) {
      return NullPointer("weights of an input");
    }
    request.inputs.back().weights = absl::MakeConstSpan(weights[i].weights, weights[i].weight_num);
  }
  return request;
}

absl::Status EncodeText(const Predictor& predictor, const cistern_text* rows, size_t row_num,
                        data::SampleBlock* block) {
  const std::shared_ptr<const data::OwnedEncoder> encoder = predictor.encoder();
  if (encoder == nullptr) {
    return WithOptions(absl::InvalidArgumentError("the model was exported without a recipe, so it "
                                                  "reads no text: export it with its recipe"),
                       {"export.serving.recipe"});
  }
  if (row_num > predictor.max_samples()) {
    return absl::InvalidArgumentError(
        absl::StrCat(row_num, " samples in one request; the limit is ", predictor.max_samples()));
  }
  std::vector<absl::string_view> lines;
  for (size_t i = 0; i < row_num; ++i) {
    if (rows[i].bytes == nullptr && rows[i].size > 0) return NullPointer("bytes of a row");
    lines.emplace_back(rows[i].bytes, rows[i].size);
  }
  std::vector<uint32_t> slot_nums;
  for (const PredictorShape::Input& input : predictor.shape().inputs) {
    slot_nums.push_back(input.slot_num);
  }
  return data::EncodeLines(*encoder, lines, slot_nums, block);
}

absl::Status PredictInto(cistern_model* model, const PredictRequest& request, absl::Span<float> out,
                         uint64_t* commit) {
  ServedVersion version;
  uint64_t unseen = 0;
  CISTERN_RETURN_IF_ERROR(model->predictor->Predict(request, out, &version, &unseen));
  if (commit != nullptr) *commit = version.commit;
  model->samples += request.samples;
  model->unseen += unseen;
  return absl::OkStatus();
}

// No exception leaves the library.
template <typename Body>
absl::Status Guarded(const Body& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("out of memory");
  } catch (const std::exception& exception) {
    return absl::InternalError(exception.what());
  }
}

size_t CopyJson(const nlohmann::ordered_json& json, char* out, size_t size) {
  const std::string text =
      json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  CopyText(text, out, size);
  return text.size();
}

}  // namespace
}  // namespace cistern::serve

extern "C" {

cistern_model* cistern_open(const char* folder, const char* options, char* error,
                            size_t error_size) {
  cistern_model* model = nullptr;
  const absl::Status opened = cistern::serve::Guarded([&]() -> absl::Status {
    if (folder == nullptr) return cistern::serve::NullPointer("folder");
    CISTERN_ASSIGN_OR_RETURN(const cistern::serve::PredictorOptions parsed,
                             cistern::serve::ReadOptions(options));
    auto fresh = std::make_unique<cistern_model>();
    CISTERN_ASSIGN_OR_RETURN(fresh->predictor, cistern::serve::OpenPredictor(folder, parsed));
    model = fresh.release();
    return absl::OkStatus();
  });
  cistern::serve::Report(opened, error, error_size);
  return model;
}

int cistern_predict(cistern_model* model, const cistern_batch* batch, float* out, size_t out_num,
                    uint64_t* commit, char* error, size_t error_size) {
  return cistern_predict_weighted(model, batch, nullptr, out, out_num, commit, error, error_size);
}

int cistern_predict_weighted(cistern_model* model, const cistern_batch* batch,
                             const cistern_weights* weights, float* out, size_t out_num,
                             uint64_t* commit, char* error, size_t error_size) {
  const absl::Status predicted = cistern::serve::Guarded([&]() -> absl::Status {
    if (model == nullptr) return cistern::serve::NullPointer("model");
    if (out == nullptr) return cistern::serve::NullPointer("out");
    CISTERN_ASSIGN_OR_RETURN(const cistern::serve::PredictRequest request,
                             cistern::serve::RequestOf(batch, weights));
    return cistern::serve::PredictInto(model, request, absl::MakeSpan(out, out_num), commit);
  });
  if (model != nullptr) ++(predicted.ok() ? model->requests : model->refused);
  return cistern::serve::Report(predicted, error, error_size);
}

int cistern_predict_text(cistern_model* model, const cistern_text* rows, size_t row_num, float* out,
                         size_t out_num, uint64_t* commit, char* error, size_t error_size) {
  const absl::Status predicted = cistern::serve::Guarded([&]() -> absl::Status {
    if (model == nullptr) return cistern::serve::NullPointer("model");
    if (rows == nullptr && row_num > 0) return cistern::serve::NullPointer("rows");
    if (out == nullptr) return cistern::serve::NullPointer("out");
    cistern::data::SampleBlock block;
    CISTERN_RETURN_IF_ERROR(cistern::serve::EncodeText(*model->predictor, rows, row_num, &block));
    cistern::serve::PredictRequest request;
    request.samples = block.size;
    request.dense = block.dense;
    for (const cistern::data::SparseColumn& column : block.sparse) {
      request.inputs.push_back({column.keys, column.offsets, column.weights});
    }
    return cistern::serve::PredictInto(model, request, absl::MakeSpan(out, out_num), commit);
  });
  if (model != nullptr) ++(predicted.ok() ? model->requests : model->refused);
  return cistern::serve::Report(predicted, error, error_size);
}

int cistern_follow(cistern_model* model, char* error, size_t error_size) {
  bool switched = false;
  const absl::Status status = cistern::serve::Guarded([&]() -> absl::Status {
    if (model == nullptr) return cistern::serve::NullPointer("model");
    CISTERN_ASSIGN_OR_RETURN(switched, model->predictor->Follow());
    return absl::OkStatus();
  });
  const int code = cistern::serve::Report(status, error, error_size);
  return status.ok() && switched ? 1 : code;
}

size_t cistern_describe(cistern_model* model, char* json, size_t size) {
  size_t length = 0;
  cistern::serve::CopyText("", json, size);
  if (model == nullptr) return 0;
  cistern::serve::Guarded([&]() -> absl::Status {
    const cistern::serve::Predictor& predictor = *model->predictor;
    const cistern::serve::ServedVersion version = predictor.version();
    nlohmann::ordered_json all = {{"name", predictor.name()},
                                  {"commit", version.commit},
                                  {"version", version.folder},
                                  {"labels", predictor.shape().label_dim},
                                  {"dense", predictor.shape().dense_dim},
                                  {"max_samples", predictor.max_samples()},
                                  {"inputs", nlohmann::ordered_json::array()}};
    for (const cistern::serve::PredictorShape::Input& input : predictor.shape().inputs) {
      all["inputs"].push_back({{"name", input.name}, {"slots", input.slot_num}});
      if (input.key_weights) all["inputs"].back()["weights"] = true;
    }
    if (const auto encoder = predictor.encoder()) {
      const cistern::data::Recipe& recipe = encoder->recipe();
      all["text"] = {{"columns", cistern::data::FeatureColumns(recipe)},
                     {"delimiter", std::string(1, cistern::data::DelimiterOf(recipe.layout))}};
      const cistern::data::TextFormatEntry& format = cistern::data::EntryOf(recipe.layout.format);
      if (format.has_features()) all["text"]["format"] = format.word;
    }
    length = cistern::serve::CopyJson(all, json, size);
    return absl::OkStatus();
  }).IgnoreError();
  return length;
}

size_t cistern_stats(cistern_model* model, char* json, size_t size) {
  size_t length = 0;
  cistern::serve::CopyText("", json, size);
  if (model == nullptr) return 0;
  cistern::serve::Guarded([&]() -> absl::Status {
    length = cistern::serve::CopyJson({{"requests", model->requests.load()},
                                       {"refused", model->refused.load()},
                                       {"samples", model->samples.load()},
                                       {"unseen_keys", model->unseen.load()},
                                       {"commit", model->predictor->version().commit}},
                                      json, size);
    return absl::OkStatus();
  }).IgnoreError();
  return length;
}

void cistern_close(cistern_model* model) {
  delete model;
}

}  // extern "C"
