#include "python/binding/fleet.h"

#include <google/protobuf/util/json_util.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/strings/str_join.h"
#include "cli/terminal/exit_code.h"
#include "common/value/step_clock.h"
#include "python/binding/interrupt.h"

namespace cistern::python {
namespace {

using namespace nb::literals;  // NOLINT

// Rows that an embedded server pulls or takes in some 20 ms.
constexpr size_t kPiece = size_t{1} << 18;

std::string JsonOf(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.always_print_primitive_fields = true;
  options.preserve_proto_field_names = true;
  std::string json;
  Check(absl::Status(google::protobuf::util::MessageToJsonString(message, &json, options).ok()
                         ? absl::OkStatus()
                         : absl::InternalError("a message has no JSON form")));
  return json;
}

v1::Schema SchemaOfJson(const std::string& json) {
  v1::Schema schema;
  const auto parsed = google::protobuf::util::JsonStringToMessage(json, &schema);
  if (parsed.ok()) return schema;
  throw StatusError(absl::InvalidArgumentError(
      absl::StrCat("tables: ", std::string(parsed.message().data(), parsed.message().size()))));
}

absl::Status CheckTableId(const ParameterClient& client, uint32_t table) {
  if (table < static_cast<uint32_t>(client.schema().tables_size())) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat("no table ", table));
}

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

void Push(Fleet& fleet, uint32_t table, nb::handle keys_object, nb::handle values_object) {
  const std::shared_ptr<FleetSession> session = fleet.session();
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

std::pair<size_t, size_t> DenseShape(const ParameterClient& client, uint32_t table) {
  if (table >= static_cast<uint32_t>(client.schema().dense_tables_size())) {
    throw StatusError(absl::NotFoundError(absl::StrCat("no dense table ", table)));
  }
  const v1::DenseTableSpec& spec = client.schema().dense_tables(static_cast<int>(table));
  return {spec.rows(), static_cast<size_t>(spec.columns_size())};
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

// Calls visit(keys [n], rows [n, floats]) for pieces of the table, until it returns False. The rows
// are whole values, up to date.
void Scan(Fleet& fleet, uint32_t table, nb::callable visit, size_t piece) {
  const std::shared_ptr<FleetSession> session = fleet.session();
  ParameterClient& client = session->client();
  Check(CheckTableId(client, table));
  const size_t floats = client.layout(table).full_floats();
  std::vector<Key> keys;
  std::vector<float> values;
  auto deliver = [&]() -> absl::Status {
    nb::gil_scoped_acquire gil;
    const size_t n = keys.size();
    const nb::object more =
        visit(ToNumpy(std::exchange(keys, {})), ToNumpy(std::exchange(values, {}), {n, floats}));
    return nb::cast<bool>(more) ? absl::OkStatus() : absl::CancelledError("the scan was ended");
  };
  absl::Status status;
  {
    nb::gil_scoped_release no_gil;
    status = client.Scan(table, [&](uint32_t, Key key, const float* value, bool) -> absl::Status {
      keys.push_back(key);
      values.insert(values.end(), value, value + floats);
      return keys.size() < piece ? absl::OkStatus() : deliver();
    });
    if (status.ok() && !keys.empty()) status = deliver();
  }
  if (status.code() != absl::StatusCode::kCancelled) Check(status);
}

void Commit(Fleet& fleet, const std::string& worker_state, bool durable) {
  Fleet* self = &fleet;
  fleet.Run([=](ParameterClient& c) -> absl::Status {
    CISTERN_RETURN_IF_ERROR(self->CheckPushes());
    CISTERN_RETURN_IF_ERROR(self->Begin(c));
    ParameterClient::CommitOptions commit;
    commit.worker_state = worker_state;
    commit.durable = durable;
    CISTERN_RETURN_IF_ERROR(c.CommitPass(commit));
    self->PassEnded();
    return absl::OkStatus();
  });
}

// The digests of all tables, computed by the servers from memory: (name, rows, digest) of each.
std::string Stats(Fleet& fleet, bool digest) {
  auto replies = std::make_shared<std::vector<v1::StatsReply>>(fleet.client().servers().size());
  fleet.ReadLong([=](ParameterClient& c) {
    return c.ForEachServer([&](size_t rank, ControlPlane& server) {
      v1::StatsRequest request;
      *request.mutable_identity() = c.identity();
      request.set_digest(digest);
      return server.Stats(request, &(*replies)[rank]);
    });
  });
  std::string json = "[";
  for (const v1::StatsReply& reply : *replies) {
    absl::StrAppend(&json, json.size() > 1 ? "," : "", JsonOf(reply));
  }
  return json + "]";
}

}  // namespace

Fleet::Fleet(bool remote) : process_(getpid()), remote_(remote) {}

std::shared_ptr<Fleet> Fleet::Open(const FleetFlags& flags, const std::string& state_root) {
  std::shared_ptr<Fleet> fleet(new Fleet(!flags.servers.empty()));
  // The session arrives through `opened`, so that an abandoned attempt touches no dead object.
  auto opened = std::make_shared<std::unique_ptr<FleetSession>>();
  Check(RunInterruptibly(
      [=]() -> absl::Status {
        CISTERN_ASSIGN_OR_RETURN(*opened, FleetSession::Open(flags, state_root));
        return absl::OkStatus();
      },
      nullptr));
  fleet->session_ = std::move(*opened);
  return fleet;
}

Fleet::~Fleet() {
  Close();
}

std::shared_ptr<FleetSession> Fleet::Close() {
  // gRPC's threads do not exist in a forked process, and an abandoned call may hang.
  if (session_ != nullptr && (getpid() != process_ || abandoned_)) {
    new std::shared_ptr<FleetSession>(std::move(session_));  // left to the end of the process
  }
  return std::exchange(session_, nullptr);
}

std::shared_ptr<FleetSession> Fleet::session() {
  if (getpid() != process_) {
    throw StatusError(
        WithFix(absl::FailedPreconditionError(
                    "this fleet was opened in another process, and its connections "
                    "do not survive a fork"),
                "open the fleet in the process that uses it (in DataLoader workers: read data "
                "there and pull "
                "rows in the main process), or start processes with multiprocessing's 'spawn'"));
  }
  if (abandoned_) {
    throw StatusError(
        WithFix(absl::FailedPreconditionError("an interrupted call has left this fleet undefined"),
                "open the fleet again; it is at its last commit"));
  }
  if (session_ == nullptr) {
    throw StatusError(WithFix(absl::FailedPreconditionError("this fleet is closed"),
                              "open it again: cs.connect(...) or cs.local(...)"));
  }
  return session_;
}

void Fleet::RunWith(Call call, std::shared_ptr<void> kept, bool alone, bool brief) {
  auto body = [self = shared_from_this(), session = session(), call = std::move(call),
               alone]() -> absl::Status {
    if (!alone) return call(session->client());
    absl::MutexLock lock(&self->verbs_);
    return call(session->client());
  };
  if (brief && !remote_) {
    absl::Status status;
    {
      nb::gil_scoped_release no_gil;
      status = body();
    }
    return Check(status);
  }
  absl::Status status;
  try {
    status = RunInterruptibly(std::move(body), std::move(kept));
  } catch (const nb::python_error&) {
    abandoned_ = remote_;
    throw;
  }
  Check(status);
}

void Fleet::Run(Call call, std::shared_ptr<void> kept) {
  RunWith(std::move(call), std::move(kept), /*alone=*/true, /*brief=*/false);
}

void Fleet::Read(Call call, std::shared_ptr<void> kept) {
  RunWith(std::move(call), std::move(kept), /*alone=*/false, /*brief=*/true);
}

void Fleet::ReadLong(Call call, std::shared_ptr<void> kept) {
  RunWith(std::move(call), std::move(kept), /*alone=*/false, /*brief=*/false);
}

void Fleet::RunPiecesWith(size_t n, PieceCall call, std::shared_ptr<void> kept, bool alone) {
  if (remote_ || n <= kPiece) {
    return RunWith([n, call = std::move(call)](ParameterClient& c) { return call(c, 0, n); },
                   std::move(kept), alone, /*brief=*/true);
  }
  const std::shared_ptr<FleetSession> session = this->session();
  std::atomic<bool> stopped{false};
  auto body = [&]() -> absl::Status {
    for (size_t begin = 0; begin < n && !stopped; begin += kPiece) {
      std::unique_ptr<absl::MutexLock> lock;
      if (alone) lock = std::make_unique<absl::MutexLock>(&verbs_);
      CISTERN_RETURN_IF_ERROR(call(session->client(), begin, std::min(begin + kPiece, n)));
    }
    return absl::OkStatus();
  };
  try {
    Check(RunStoppably(body, [&stopped] { stopped = true; }));
  } catch (const nb::python_error&) {
    absl::MutexLock lock(&verbs_);
    if (alone) PushEnded(absl::CancelledError("interrupted"));
    throw;
  }
}

void Fleet::RunPieces(size_t n, PieceCall call, std::shared_ptr<void> kept) {
  RunPiecesWith(n, std::move(call), std::move(kept), /*alone=*/true);
}

void Fleet::ReadPieces(size_t n, PieceCall call, std::shared_ptr<void> kept) {
  RunPiecesWith(n, std::move(call), std::move(kept), /*alone=*/false);
}

absl::Status Fleet::Claim(ParameterClient& client) {
  PassFailed();
  CISTERN_RETURN_IF_ERROR(client.ClaimTerm());
  claimed_ = true;
  return absl::OkStatus();
}

absl::Status Fleet::CheckPushes() const {
  if (!push_failed_) return absl::OkStatus();
  return WithFix(absl::FailedPreconditionError("a push since the last commit failed or was "
                                               "interrupted, so rows are missing"),
                 "call Fleet.abort(), which drops all pushes since that commit; then push again");
}

absl::Status Fleet::Begin(ParameterClient& client) {
  if (pass_is_open_) return absl::OkStatus();
  if (!claimed_) CISTERN_RETURN_IF_ERROR(Claim(client));
  CISTERN_RETURN_IF_ERROR(client.BeginPass());
  pass_is_open_ = true;
  return absl::OkStatus();
}

void BindFleet(nb::module_& module) {
  nb::class_<Fleet>(module, "Fleet")
      .def_static(
          "open",
          [](const std::string& servers, uint64_t embedded, const std::string& state_root,
             const std::string& cluster, double timeout, bool take_over) {
            FleetFlags flags;
            flags.servers = servers;
            flags.embedded_servers = embedded;
            flags.cluster = cluster;
            flags.connect_timeout = timeout;
            flags.take_over = take_over;
            flags.program = "cistern_ps (Python)";
            return Fleet::Open(flags, state_root);
          },
          "servers"_a, "embedded"_a, "state_root"_a, "cluster"_a, "timeout"_a, "take_over"_a)
      .def("close",
           [](Fleet& f) {
             std::shared_ptr<FleetSession> session = f.Close();
             nb::gil_scoped_release no_gil;
             session.reset();
           })
      .def_prop_ro("closed", &Fleet::closed)
      .def_prop_ro("durable", [](Fleet& f) { return f.client().durable(); })
      .def_prop_ro("server_num", [](Fleet& f) { return f.client().servers().size(); })
      .def_prop_ro("committed_pass", [](Fleet& f) { return f.client().committed_pass(); })
      .def("schema", [](Fleet& f) { return JsonOf(f.client().schema()); })
      .def("manifest", [](Fleet& f) { return JsonOf(f.client().manifest()); })
      .def("stats", &Stats, "digest"_a)
      .def("floats",
           [](Fleet& f, uint32_t table) {
             Check(CheckTableId(f.client(), table));
             return f.client().layout(table).full_floats();
           })
      .def("field_names",
           [](Fleet& f, uint32_t table) {
             Check(CheckTableId(f.client(), table));
             return f.client().layout(table).FieldNames(true);
           })
      .def("create",
           [](Fleet& f, const std::string& json) {
             const v1::Schema schema = SchemaOfJson(json);
             f.Run([schema](ParameterClient& c) { return c.CreateTables(schema); });
           })
      .def("claim", [](Fleet& f) { f.Run([&f](ParameterClient& c) { return f.Claim(c); }); })
      .def("pull", &Pull, "table"_a, "keys"_a.none(), "out"_a.none(), "absent_is_zero"_a, "state"_a)
      .def("push", &Push, "table"_a, "keys"_a.none(), "rows"_a.none())
      .def("pull_dense", &PullDense, "table"_a)
      .def("push_dense", &PushDense, "table"_a, "values"_a)
      .def("scan", &Scan, "table"_a, "visit"_a, "piece"_a)
      .def("commit", &Commit, "worker_state"_a, "durable"_a)
      .def("abort", [](Fleet& f) {
        f.Run([&f](ParameterClient& c) -> absl::Status {
          if (!f.pass_is_open()) {
            f.PassEnded();
            return absl::OkStatus();
          }
          f.PassFailed();
          return c.AbortPass();
        });
      });
}

}  // namespace cistern::python
