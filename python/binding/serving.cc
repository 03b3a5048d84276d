#include "python/binding/module.h"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "app/predict/predict.h"
#include "python/binding/errors.h"
#include "python/binding/gil.h"
#include "python/binding/interrupt.h"
#include "serve/predictor/open_predictor.h"

namespace cistern::python {
namespace {

using namespace nb::literals;  // NOLINT

std::shared_ptr<serve::Predictor> Open(const std::string& folder, int threads, size_t max_samples,
                                       int poll_ms, bool verify, const std::string& version) {
  serve::PredictorOptions options;
  options.threads = threads;
  options.max_samples = max_samples;
  options.poll_ms = poll_ms;
  options.verify = verify;
  options.version = version;
  auto opened =
      std::make_shared<std::unique_ptr<serve::Predictor>>();  // kept by an interrupted call
  Check(RunInterruptibly(
      [=]() -> absl::Status {
        CISTERN_ASSIGN_OR_RETURN(*opened, serve::OpenPredictor(folder, options));
        return absl::OkStatus();
      },
      nullptr));
  return std::move(*opened);
}

// inputs: a list of (keys, offsets, weights of keys or None). Returns (probabilities [samples,
// labels], commit, unseen keys).
nb::tuple Predict(serve::Predictor& predictor, size_t samples, nb::handle dense_object,
                  const nb::list& inputs) {
  const ArrayView<const float> dense = FloatsOf(dense_object, "dense");
  std::vector<ArrayView<const Key>> keys;
  std::vector<ArrayView<const uint32_t>> offsets;
  std::vector<ArrayView<const float>> weights;
  serve::PredictRequest request;
  request.samples = samples;
  request.dense = dense.span;
  for (const nb::handle input : inputs) {
    const auto parts = nb::cast<nb::tuple>(input);
    keys.push_back(KeysOf(parts[0], "keys"));
    offsets.push_back(CountsOf(parts[1], "offsets"));
    request.inputs.push_back({keys.back().span, offsets.back().span});
    if (parts[2].is_none()) continue;
    weights.push_back(FloatsOf(parts[2], "key_weights"));
    request.inputs.back().weights = weights.back().span;
  }
  if (samples > predictor.max_samples()) {  // before memory is taken for the answer
    throw nb::value_error("more samples than max_samples of cs.serve.open");
  }
  NumpyFloats out = NewFloats({samples, predictor.shape().label_dim});
  serve::ServedVersion version;
  uint64_t unseen = 0;
  absl::Status status;
  {
    ReleaseGil no_gil;
    status = predictor.Predict(request, absl::MakeSpan(out.data(), out.size()), &version, &unseen);
  }
  Check(status);
  return nb::make_tuple(out, version.commit, unseen);
}

// Rows in `files`, as of cs.predict with the serving folder `folder` that `predictor` is open for;
// returns as Predict.
nb::tuple PredictRows(serve::Predictor& predictor, const std::filesystem::path& folder,
                      const std::vector<std::string>& files,
                      const std::vector<std::string>& add_column) {
  app::PredictOptions options;
  options.model.config = folder.string();
  options.data = files;
  options.add_columns = add_column;
  std::vector<float> found;
  const size_t columns = predictor.shape().label_dim;
  const auto keep = [&](absl::Span<const float>, absl::Span<const float> predictions) {
    if (!found.empty()) {  // two requests may be predicted by two versions
      return absl::InvalidArgumentError("more samples than max_samples of cs.serve.open");
    }
    found.assign(predictions.begin(), predictions.end());
    return absl::OkStatus();
  };
  absl::StatusOr<app::PredictResult> done;
  {
    ReleaseGil no_gil;
    done = app::PredictFilesWith(
        predictor, options, [](const std::string&) {}, keep);
  }
  Check(done.status());
  const size_t rows = found.size() / columns;
  return nb::make_tuple(ToNumpy(std::move(found), {rows, columns}),
                        done->has_rows ? done->commit : predictor.version().commit,
                        done->summary.unseen_keys);
}

nb::dict ShapeOf(const serve::Predictor& predictor) {
  nb::dict shape;
  shape["labels"] = predictor.shape().label_dim;
  shape["dense"] = predictor.shape().dense_dim;
  nb::list inputs;
  for (const serve::PredictorShape::Input& input : predictor.shape().inputs) {
    inputs.append(nb::make_tuple(input.name, input.slot_num));
  }
  shape["inputs"] = inputs;
  nb::list weighted;
  for (const serve::PredictorShape::Input& input : predictor.shape().inputs) {
    if (input.key_weights) weighted.append(input.name);
  }
  shape["key_weights"] = weighted;
  return shape;
}

bool Follow(serve::Predictor& predictor) {
  absl::StatusOr<bool> newer;
  {
    ReleaseGil no_gil;
    newer = predictor.Follow();
  }
  return Take(std::move(newer));
}

}  // namespace

void BindServing(nb::module_& module) {
  nb::class_<serve::Predictor>(module, "Predictor")
      .def_prop_ro("name", &serve::Predictor::name)
      .def_prop_ro("commit", [](const serve::Predictor& p) { return p.version().commit; })
      .def_prop_ro("folder", [](const serve::Predictor& p) { return p.version().folder; })
      .def_prop_ro("shape", &ShapeOf)
      .def("predict", &Predict, "samples"_a, "dense"_a, "inputs"_a)
      .def("predict_rows", &PredictRows, "folder"_a, "files"_a, "add_column"_a)
      .def("follow", &Follow);
  module.def("open_serving", &Open, "folder"_a, "threads"_a, "max_samples"_a, "poll_ms"_a,
             "verify"_a, "version"_a);
}

}  // namespace cistern::python
