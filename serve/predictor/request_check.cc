#include "serve/predictor/request_check.h"

#include <cmath>

#include "absl/strings/str_cat.h"

namespace cistern::serve {
namespace {

absl::Status CheckInput(const PredictorShape::Input& input, const PredictRequest::Input& given,
                        size_t samples) {
  const auto error = [&](const std::string& what) {
    return absl::InvalidArgumentError(absl::StrCat("input '", input.name, "': ", what));
  };
  const size_t wanted = samples * input.slot_num + 1;
  if (given.offsets.size() != wanted) {
    return error(absl::StrCat(given.offsets.size(), " offsets; ", samples, " samples of ",
                              input.slot_num, " slots need ", wanted));
  }
  if (given.offsets.front() != 0) return error("the first offset is not 0");
  for (size_t i = 1; i < given.offsets.size(); ++i) {
    if (given.offsets[i] < given.offsets[i - 1]) {
      return error(absl::StrCat("offset ", i, " is ", given.offsets[i], ", below the one before (",
                                given.offsets[i - 1], ")"));
    }
  }
  if (given.offsets.back() != given.keys.size()) {
    return error(absl::StrCat("the last offset is ", given.offsets.back(), ", but there are ",
                              given.keys.size(), " keys"));
  }
  if (given.weights.size() != (input.key_weights ? given.keys.size() : 0)) {
    return error(absl::StrCat(given.weights.size(), " weights for ", given.keys.size(), " keys; ",
                              input.key_weights
                                  ? "each key of this input has a weight (cistern.key_weights)"
                                  : "the keys of this input have no weights"));
  }
  for (size_t i = 0; i < given.weights.size(); ++i) {
    if (std::isfinite(given.weights[i])) continue;
    return error(absl::StrCat("weight ", i, " is not a finite number"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckRequest(const PredictRequest& request, size_t predictions,
                          const PredictorShape& shape, const PredictorOptions& limits) {
  if (request.samples == 0) return absl::InvalidArgumentError("a request without samples");
  if (request.samples > limits.max_samples) {
    return absl::InvalidArgumentError(absl::StrCat(
        request.samples, " samples in one request; the limit is ", limits.max_samples));
  }
  if (predictions != request.samples * shape.label_dim) {
    return absl::InvalidArgumentError(absl::StrCat("room for ", predictions,
                                                   " predictions; the request has ",
                                                   request.samples * shape.label_dim));
  }
  if (request.dense.size() != request.samples * shape.dense_dim) {
    return absl::InvalidArgumentError(
        absl::StrCat(request.dense.size(), " dense features; ", request.samples, " samples need ",
                     request.samples * shape.dense_dim, " (", shape.dense_dim, " per sample)"));
  }
  for (size_t i = 0; i < request.dense.size(); ++i) {
    if (std::isfinite(request.dense[i])) continue;
    return absl::InvalidArgumentError(absl::StrCat("sample ", i / shape.dense_dim,
                                                   ": dense feature ", i % shape.dense_dim,
                                                   " is not a finite number"));
  }
  if (request.inputs.size() != shape.inputs.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(request.inputs.size(), " sparse inputs; the model has ", shape.inputs.size()));
  }
  size_t keys = 0;
  for (size_t i = 0; i < shape.inputs.size(); ++i) {
    CISTERN_RETURN_IF_ERROR(CheckInput(shape.inputs[i], request.inputs[i], request.samples));
    keys += request.inputs[i].keys.size();
  }
  if (keys <= limits.max_keys) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(keys, " keys in one request; the limit is ", limits.max_keys));
}

}  // namespace cistern::serve
