#include "python/binding/table_calls.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/value/step_clock.h"
#include "python/binding/gil.h"

namespace cistern::python {
namespace {

// What a table's rows look like in Python: [weights, or the whole value].
struct RowShape {
  size_t floats, first, columns;
};
RowShape ShapeOf(const ValueLayout& layout, bool state) {
  const size_t floats = layout.full_floats();
  if (state) return {floats, 0, floats};
  return {floats, layout.weight_index(), layout.dim()};
}

// out: [keys, shape.columns].
absl::Status PullRows(ParameterClient& client, uint32_t table, absl::Span<const Key> keys,
                      bool absent_is_zero, const RowShape& shape, float* out) {
  std::vector<uint8_t> has_embedx(keys.size());
  const RowReader reader(client.layout(table), client.clock(), table);
  if (shape.columns == shape.floats && !reader.changes()) {
    return client.Pull(table, keys, absent_is_zero, out, has_embedx.data());
  }
  std::unique_ptr<float[]> values(new float[keys.size() * shape.floats]);
  CISTERN_RETURN_IF_ERROR(
      client.Pull(table, keys, absent_is_zero, values.get(), has_embedx.data()));
  for (size_t i = 0; i < keys.size(); ++i) {
    float* value = values.get() + i * shape.floats;
    reader.BringUp(value);
    std::copy_n(value + shape.first, shape.columns, out + i * shape.columns);
  }
  return absl::OkStatus();
}

// Throws unless the rows are [n, dim] or whole values.
void CheckRowShape(const ValueLayout& layout, const std::vector<int64_t>& shape) {
  if (shape.size() == 2 &&
      (shape[1] == layout.dim() || shape[1] == static_cast<int64_t>(layout.full_floats()))) {
    return;
  }
  throw nb::value_error(absl::StrCat("rows: expected the shape [n, ", layout.dim(), "], or [n, ",
                                     layout.full_floats(), "] with state; got [",
                                     absl::StrJoin(shape, ", "), "]")
                            .c_str());
}

// Whole values: new weights [keys, dim], and the committed state beside them.
absl::StatusOr<std::vector<float>> WithState(ParameterClient& client, uint32_t table,
                                             absl::Span<const Key> keys, const float* weights) {
  const ValueLayout& layout = client.layout(table);
  std::vector<float> values(keys.size() * layout.full_floats());
  CISTERN_RETURN_IF_ERROR(PullRows(client, table, keys, /*absent_is_zero=*/false,
                                   ShapeOf(layout, /*state=*/true), values.data()));
  for (size_t i = 0; i < keys.size(); ++i) {
    std::copy_n(weights + i * layout.dim(), layout.dim(),
                values.data() + i * layout.full_floats() + layout.weight_index());
  }
  return values;
}

std::pair<size_t, size_t> DenseShape(const ParameterClient& client, uint32_t table) {
  if (table >= static_cast<uint32_t>(client.schema().dense_tables_size())) {
    throw StatusError(absl::NotFoundError(absl::StrCat("no dense table ", table)));
  }
  const v1::DenseTableSpec& spec = client.schema().dense_tables(static_cast<int>(table));
  return {spec.rows(), static_cast<size_t>(spec.columns_size())};
}

}  // namespace

absl::Status CheckTableId(const ParameterClient& client, uint32_t table) {
  if (table < static_cast<uint32_t>(client.schema().tables_size())) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat("no table ", table));
}

nb::object Pull(Fleet& fleet, uint32_t table, nb::handle keys_object, nb::handle out_object,
                bool absent_is_zero, bool state) {
  auto keys = std::make_shared<ArrayView<const Key>>(KeysOf(keys_object, "keys"));
  ParameterClient& client = fleet.client();
  Check(CheckTableId(client, table));
  const RowShape shape = ShapeOf(client.layout(table), state);
  const size_t n = keys->span.size();
  nb::object result = nb::borrow(out_object);
  if (result.is_none()) result = nb::cast(NewFloats({n, shape.columns}));
  const ArrayView<float> out = FloatsOut(result, "out", n, shape.columns);
  struct Kept {
    std::shared_ptr<ArrayView<const Key>> keys;
    nb::object out;
  };
  auto kept = std::make_shared<Kept>(Kept{keys, result});
  const absl::Span<const Key> span = keys->span;
  float* to = out.span.data();
  fleet.ReadPieces(
      n,
      [=](ParameterClient& c, size_t begin, size_t end) {
        return PullRows(c, table, span.subspan(begin, end - begin), absent_is_zero, shape,
                        to + begin * shape.columns);
      },
      kept);
  return result;
}

void Push(Fleet& fleet, uint32_t table, nb::handle keys_object, nb::handle values_object) {
  const std::shared_ptr<app::FleetSession> session = fleet.session();
  ParameterClient& client = session->client();
  Check(CheckTableId(client, table));
  struct Kept {
    ArrayView<const Key> keys;
    ArrayView<const float> values;
  };
  auto kept = std::make_shared<Kept>();
  kept->keys = KeysOf(keys_object, "keys");
  kept->values = FloatsOf(values_object, "rows");
  const ValueLayout& layout = client.layout(table);
  const bool weights_only = layout.dim() != layout.full_floats() &&
                            kept->values.shape.size() == 2 && kept->values.shape[1] == layout.dim();
  CheckRowShape(layout, kept->values.shape);
  if (kept->values.shape[0] != static_cast<int64_t>(kept->keys.span.size())) {
    throw nb::value_error("rows: expected one row for each key");
  }
  const absl::Span<const Key> keys = kept->keys.span;
  const float* values = kept->values.span.data();
  Fleet* self = &fleet;
  const size_t floats = kept->values.shape[1];
  fleet.RunPieces(
      keys.size(),
      [=](ParameterClient& c, size_t begin, size_t end) -> absl::Status {
        const absl::Status status = [&]() -> absl::Status {
          CISTERN_RETURN_IF_ERROR(self->Begin(c));
          const absl::Span<const Key> piece = keys.subspan(begin, end - begin);
          const std::vector<uint8_t> has_embedx(piece.size(), 1);
          if (!weights_only)
            return c.Push(table, piece, values + begin * floats, has_embedx.data());
          CISTERN_ASSIGN_OR_RETURN(const std::vector<float> whole,
                                   WithState(c, table, piece, values + begin * floats));
          return c.Push(table, piece, whole.data(), has_embedx.data());
        }();
        self->PushEnded(status);
        return status;
      },
      kept);
}

NumpyFloats PullDense(Fleet& fleet, uint32_t table) {
  const auto [rows, columns] = DenseShape(fleet.client(), table);
  auto values = std::make_shared<std::vector<float>>(rows * columns);
  fleet.Read([=](ParameterClient& c) { return c.PullDense(table, values->data()); });
  return ToNumpy(std::move(*values), {rows, columns});
}

void PushDense(Fleet& fleet, uint32_t table, nb::handle object) {
  const auto [rows, columns] = DenseShape(fleet.client(), table);
  auto values = std::make_shared<ArrayView<const float>>(FloatsOf(object, "values", columns));
  if (values->shape[0] != static_cast<int64_t>(rows)) {
    throw nb::value_error("values: expected a row for each row of the table");
  }
  Fleet* self = &fleet;
  const float* data = values->span.data();
  fleet.Run(
      [=](ParameterClient& c) -> absl::Status {
        CISTERN_RETURN_IF_ERROR(self->Begin(c));
        return c.PushDense(table, data);
      },
      values);
}

void Scan(Fleet& fleet, uint32_t table, nb::callable visit, size_t piece) {
  const std::shared_ptr<app::FleetSession> session = fleet.session();
  ParameterClient& client = session->client();
  Check(CheckTableId(client, table));
  const size_t floats = client.layout(table).full_floats();
  std::vector<Key> keys;
  std::vector<float> values;
  auto deliver = [&]() -> absl::Status {
    AcquireGil gil;
    const size_t n = keys.size();
    const nb::object more =
        visit(ToNumpy(std::exchange(keys, {})), ToNumpy(std::exchange(values, {}), {n, floats}));
    return nb::cast<bool>(more) ? absl::OkStatus() : absl::CancelledError("the scan was ended");
  };
  absl::Status status;
  {
    ReleaseGil no_gil;
    status = client.Scan(table, [&](uint32_t, Key key, const float* value, bool) -> absl::Status {
      keys.push_back(key);
      values.insert(values.end(), value, value + floats);
      return keys.size() < piece ? absl::OkStatus() : deliver();
    });
    if (status.ok() && !keys.empty()) status = deliver();
  }
  if (status.code() != absl::StatusCode::kCancelled) Check(status);
}

}  // namespace cistern::python
