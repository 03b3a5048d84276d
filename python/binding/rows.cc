#include "python/binding/module.h"

#include <nanobind/stl/shared_ptr.h>

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "python/binding/fleet.h"
#include "python/binding/gil.h"
#include "python/rows/gradient_sums.h"
#include "python/rows/live_rows.h"
#include "python/rows/pooling.h"
#include "worker/data/source/batch_builder.h"

namespace cistern::python {
namespace {

using namespace nb::literals;  // NOLINT

// LiveRows of a fleet that stays open as long as they live.
//
// Threads: any Python thread; calls take turns.
struct Rows {
  Rows(std::shared_ptr<Fleet> f, LiveRows r)
      : fleet(std::move(f)),
        table(r.table()),
        dim(r.dim()),
        floats(r.value_floats()),
        rows(std::move(r)) {}
  const std::shared_ptr<Fleet> fleet;
  const TableId table;
  const size_t dim, floats;
  absl::Mutex mutex;
  LiveRows rows ABSL_GUARDED_BY(mutex);
};
using RowsPtr = std::shared_ptr<Rows>;

RowsPtr NewRows(std::shared_ptr<Fleet> fleet, uint32_t table) {
  ParameterClient& client = fleet->client();
  if (table >= static_cast<uint32_t>(client.schema().tables_size())) {
    throw StatusError(absl::NotFoundError(absl::StrCat("no table ", table)));
  }
  LiveRows rows = Take(LiveRows::Create(client, table));
  return std::make_shared<Rows>(std::move(fleet), std::move(rows));
}

// (rows [m] int32, places [n] int32, weights [m, dim]) of keys [n].
nb::tuple LookUp(const RowsPtr& self, nb::handle keys_object) {
  auto keys = std::make_shared<ArrayView<const Key>>(KeysOf(keys_object, "keys"));
  auto batch = std::make_shared<LiveBatch>();
  auto weights = std::make_shared<std::vector<float>>();
  const absl::Span<const Key> span = keys->span;
  self->fleet->Read(
      [=](ParameterClient&) -> absl::Status {
        absl::MutexLock lock(&self->mutex);
        CISTERN_RETURN_IF_ERROR(self->rows.LookUp(span, batch.get()));
        weights->resize(batch->rows.size() * self->rows.dim());
        self->rows.CopyWeights(batch->rows, weights->data());
        return absl::OkStatus();
      },
      keys);
  const size_t m = batch->rows.size();
  return nb::make_tuple(ToNumpy(std::move(batch->rows)), ToNumpy(std::move(batch->places)),
                        ToNumpy(std::move(*weights), {m, self->dim}));
}

// Pulls the rows of keys [n] that are not here, without holding up other calls meanwhile.
void Prefetch(const RowsPtr& self, nb::handle keys_object) {
  auto keys = std::make_shared<ArrayView<const Key>>(KeysOf(keys_object, "keys"));
  const absl::Span<const Key> span = keys->span;
  self->fleet->Read(
      [=](ParameterClient& client) -> absl::Status {
        std::vector<Key> missing;
        {
          absl::MutexLock lock(&self->mutex);
          missing = self->rows.MissingOf(span);
        }
        std::vector<float> values(missing.size() * self->floats);
        std::vector<uint8_t> has_embedx(missing.size());
        CISTERN_RETURN_IF_ERROR(client.Pull(self->table, missing, /*absent_is_zero=*/false,
                                            values.data(), has_embedx.data()));
        absl::MutexLock lock(&self->mutex);
        self->rows.Add(missing, values.data());
        return absl::OkStatus();
      },
      keys);
}

// Weights [n, dim] of keys [n]; no row is kept here.
NumpyFloats Read(const RowsPtr& self, nb::handle keys_object, bool absent_is_zero) {
  auto keys = std::make_shared<ArrayView<const Key>>(KeysOf(keys_object, "keys"));
  auto weights = std::make_shared<std::vector<float>>();
  const absl::Span<const Key> span = keys->span;
  weights->resize(span.size() * self->dim);
  self->fleet->Read(
      [=](ParameterClient&) -> absl::Status {
        absl::MutexLock lock(&self->mutex);
        return self->rows.Read(span, absent_is_zero, weights->data());
      },
      keys);
  return ToNumpy(std::move(*weights), {span.size(), self->dim});
}

// The session holds what LiveRows refers to.
template <class F>
auto Locked(Rows& self, F&& f) {
  const std::shared_ptr<app::FleetSession> session = self.fleet->session();
  ReleaseGil no_gil;
  absl::MutexLock lock(&self.mutex);
  return f(self.rows);
}

// Gradients of rows as their caller gives them: one row of floats for each.
struct RowGradients {
  RowGradients(nb::handle rows_object, nb::handle grads_object, size_t dim)
      : rows(CountsOf(rows_object, "rows")), grads(FloatsOf(grads_object, "grads", dim)) {
    if (grads.shape[0] == static_cast<int64_t>(rows.span.size())) return;
    throw nb::value_error("grads: expected one row for each of rows");
  }
  const ArrayView<const uint32_t> rows;
  const ArrayView<const float> grads;
};

void AddGradients(const RowsPtr& self, nb::handle rows_object, nb::handle grads_object) {
  const RowGradients of(rows_object, grads_object, self->dim);
  Check(Locked(*self, [&](LiveRows& live) {
    return live.AddGradients(of.rows.span, of.grads.span.data());
  }));
}

void Step(const RowsPtr& self, double learning_rate, uint64_t step) {
  Locked(*self, [&](LiveRows& live) { live.Step(learning_rate, step); });
}

void PushChanged(const RowsPtr& self) {
  self->fleet->Run([=](ParameterClient& c) -> absl::Status {
    CISTERN_RETURN_IF_ERROR(self->fleet->Begin(c));
    absl::MutexLock lock(&self->mutex);
    return self->rows.PushChanged();
  });
}

Occurrences OccurrencesOf(absl::Span<const uint32_t> places, absl::Span<const uint32_t> offsets,
                          size_t row_num) {
  if (offsets.empty() || offsets.front() != 0 || offsets.back() != places.size()) {
    const std::string why =
        absl::StrCat("offsets: expected the first to be 0 and the last to be the number of keys, ",
                     places.size());
    throw nb::value_error(why.c_str());
  }
  for (size_t i = 1; i < offsets.size(); ++i) {
    if (offsets[i] < offsets[i - 1]) throw nb::value_error("offsets: expected ascending numbers");
  }
  for (const uint32_t place : places) {
    if (place >= row_num) throw nb::value_error("places: a place beyond the last row");
  }
  return {places, offsets};
}

// The factors of weights of keys: with `mean`, their shares of their outputs. None: there are none.
std::vector<float> FactorsOf(nb::handle key_weights, const Occurrences& batch, bool mean) {
  if (key_weights.is_none()) return {};
  const ArrayView<const float> weights = FloatsOf(key_weights, "per_sample_weights");
  if (weights.span.size() != batch.places.size()) {
    const std::string why =
        absl::StrCat("per_sample_weights: ", weights.span.size(), " of them for ",
                     batch.places.size(), " keys: expected one for each key");
    throw nb::value_error(why.c_str());
  }
  for (const float weight : weights.span) {
    if (!std::isfinite(weight)) {
      throw nb::value_error("per_sample_weights: a weight is not a finite number");
    }
  }
  if (mean) return data::SharesOf(batch.offsets, weights.span);
  return {weights.span.begin(), weights.span.end()};
}

NumpyFloats Pool(nb::handle weights_object, nb::handle places_object, nb::handle offsets_object,
                 bool mean, nb::handle key_weights) {
  const ArrayView<const float> weights = FloatsOf(weights_object, "weights");
  const ArrayView<const uint32_t> places = CountsOf(places_object, "places");
  const ArrayView<const uint32_t> offsets = CountsOf(offsets_object, "offsets");
  if (weights.shape.size() != 2) throw nb::value_error("weights: expected the shape [rows, dim]");
  Occurrences batch = OccurrencesOf(places.span, offsets.span, weights.shape[0]);
  const std::vector<float> factors = FactorsOf(key_weights, batch, mean);
  batch.factors = factors;
  const auto dim = static_cast<uint32_t>(weights.shape[1]);
  NumpyFloats out = NewFloats({batch.outputs(), dim});
  ReleaseGil no_gil;
  PoolRows(batch, mean && key_weights.is_none(), dim, weights.span.data(), out.data());
  return out;
}

NumpyFloats PoolBackward(nb::handle grads_object, nb::handle places_object,
                         nb::handle offsets_object, bool mean, size_t row_num,
                         nb::handle key_weights) {
  const ArrayView<const float> grads = FloatsOf(grads_object, "grads");
  const ArrayView<const uint32_t> places = CountsOf(places_object, "places");
  const ArrayView<const uint32_t> offsets = CountsOf(offsets_object, "offsets");
  Occurrences batch = OccurrencesOf(places.span, offsets.span, row_num);
  const std::vector<float> factors = FactorsOf(key_weights, batch, mean);
  batch.factors = factors;
  if (grads.shape.size() != 2 || grads.shape[0] != static_cast<int64_t>(batch.outputs())) {
    throw nb::value_error("grads: expected the shape [outputs, dim]");
  }
  const auto dim = static_cast<uint32_t>(grads.shape[1]);
  NumpyFloats out = NewFloats({row_num, dim});
  ReleaseGil no_gil;
  PoolRowsBackward(batch, mean && key_weights.is_none(), dim, grads.span.data(), row_num,
                   out.data());
  return out;
}

}  // namespace

void BindRows(nb::module_& module) {
  nb::class_<Rows>(module, "Rows")
      .def(nb::new_(&NewRows), "fleet"_a, "table"_a)
      .def(
          "look_up", [](const RowsPtr& r, nb::handle keys) { return LookUp(r, keys); },
          "keys"_a.none())
      .def("prefetch", &Prefetch, "keys"_a)
      .def("read", &Read, "keys"_a.none(), "absent_is_zero"_a)
      .def("add_gradients", &AddGradients, "rows"_a, "grads"_a)
      .def("step", &Step, "learning_rate"_a, "step"_a)
      .def("push_changed", &PushChanged)
      .def("drop_gradients", [](Rows& r) { Locked(r, [](LiveRows& l) { l.DropGradients(); }); })
      .def("committed", [](Rows& r) { Locked(r, [](LiveRows& l) { l.Committed(); }); })
      .def("clear", [](Rows& r) { Locked(r, [](LiveRows& l) { l.Clear(); }); })
      .def_prop_ro("size", [](Rows& r) { return Locked(r, [](LiveRows& l) { return l.size(); }); })
      .def_prop_ro("changed",
                   [](Rows& r) { return Locked(r, [](LiveRows& l) { return l.changed(); }); })
      .def_prop_ro("bytes",
                   [](Rows& r) { return Locked(r, [](LiveRows& l) { return l.bytes(); }); });
  // Called with the GIL, so one call at a time.
  nb::class_<GradientSums>(module, "GradientSums")
      .def(
          "__init__",
          [](GradientSums* self, uint32_t dim) {
            new (self) GradientSums(dim, /*counts_squares=*/true);
          },
          "dim"_a)
      .def(
          "add",
          [](GradientSums& sums, nb::handle rows, nb::handle grads) {
            const RowGradients of(rows, grads, sums.dim());
            sums.Add(of.rows.span, of.grads.span.data());
          },
          "rows"_a, "grads"_a)
      .def("clear", &GradientSums::Clear)
      .def("square_sum", &GradientSums::SquareSum);
  module.def(
      "square_sum",
      [](nb::handle grads_object) {
        const ArrayView<const float> grads = FloatsOf(grads_object, "grads");
        return SquareSum(grads.span);
      },
      "grads"_a);
  module.def("pool", &Pool, "weights"_a, "places"_a, "offsets"_a, "mean"_a,
             "key_weights"_a.none() = nb::none());
  module.def("pool_backward", &PoolBackward, "grads"_a, "places"_a, "offsets"_a, "mean"_a,
             "row_num"_a, "key_weights"_a.none() = nb::none());
}

}  // namespace cistern::python
