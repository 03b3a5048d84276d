#include "python/binding/fleet.h"

#include <google/protobuf/util/json_util.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <tuple>
#include <utility>

#include "cli/terminal/exit_code.h"
#include "python/binding/gil.h"
#include "python/binding/interrupt.h"
#include "python/binding/table_calls.h"

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
  auto replies = std::make_shared<std::vector<v1::StatsReply>>();
  fleet.ReadLong([=](ParameterClient& c) -> absl::Status {
    CISTERN_ASSIGN_OR_RETURN(*replies, app::StatsOn(c, digest));
    return absl::OkStatus();
  });
  std::string json = "[";
  for (const v1::StatsReply& reply : *replies) {
    absl::StrAppend(&json, json.size() > 1 ? "," : "", JsonOf(reply));
  }
  return json + "]";
}

}  // namespace

Fleet::Fleet(bool remote) : process_(getpid()), remote_(remote) {}

std::shared_ptr<Fleet> Fleet::Open(const app::FleetOptions& flags, const std::string& state_root) {
  std::shared_ptr<Fleet> fleet(new Fleet(!flags.servers.empty()));
  // The session arrives through `opened`, so that an abandoned attempt touches no dead object.
  auto opened = std::make_shared<std::unique_ptr<app::FleetSession>>();
  Check(RunInterruptibly(
      [=]() -> absl::Status {
        CISTERN_ASSIGN_OR_RETURN(*opened, app::FleetSession::Open(flags, state_root));
        return absl::OkStatus();
      },
      nullptr));
  fleet->session_ = std::move(*opened);
  return fleet;
}

Fleet::~Fleet() {
  Close();
}

std::shared_ptr<app::FleetSession> Fleet::Close() {
  // gRPC's threads do not exist in a forked process, and an abandoned call may hang.
  if (session_ != nullptr && (getpid() != process_ || abandoned_)) {
    new std::shared_ptr<app::FleetSession>(std::move(session_));  // left to the end of the process
  }
  return std::exchange(session_, nullptr);
}

std::shared_ptr<app::FleetSession> Fleet::session() {
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
    throw StatusError(WithFix(absl::FailedPreconditionError(
                                  "an interrupted call has left this fleet in an undefined state"),
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
      ReleaseGil no_gil;
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
  const std::shared_ptr<app::FleetSession> session = this->session();
  std::atomic<bool> stopped{false};
  auto body = [&]() -> absl::Status {
    std::unique_ptr<absl::MutexLock> lock;  // over all pieces: a push is one verb
    if (alone) lock = std::make_unique<absl::MutexLock>(&verbs_);
    for (size_t begin = 0; begin < n && !stopped; begin += kPiece) {
      CISTERN_RETURN_IF_ERROR(call(session->client(), begin, std::min(begin + kPiece, n)));
    }
    return absl::OkStatus();
  };
  try {
    Check(RunStoppably(body, [&stopped] { stopped = true; }));
  } catch (const nb::python_error&) {
    if (alone) {
      ReleaseGil no_gil;
      absl::MutexLock lock(&verbs_);
      PushEnded(absl::CancelledError("interrupted"));
    }
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
  const absl::Status claimed = client.ClaimTerm();
  if (absl::IsFailedPrecondition(claimed)) {  // in the words of Python
    return WithFix(WithOptions(claimed, {}), "cs.connect(..., take_over=True)");
  }
  CISTERN_RETURN_IF_ERROR(claimed);
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
             double memory_limit_mb,
             const std::vector<std::tuple<std::string, uint64_t, double, uint64_t>>& pass_caches,
             const std::string& cluster, double timeout, bool take_over, const std::string& tls_ca,
             const std::string& tls_cert, const std::string& tls_key) {
            app::FleetOptions flags;
            flags.servers = servers;
            flags.embedded_servers = embedded;
            flags.memory_limit_mb = memory_limit_mb;
            for (const auto& [table, num_blocks, target_hit_rate, max_num_evict] : pass_caches) {
              flags.pass_caches.push_back({table, num_blocks, target_hit_rate, max_num_evict});
            }
            flags.cluster = cluster;
            flags.connect_timeout = timeout;
            flags.take_over = take_over;
            flags.tls = {tls_cert, tls_key, tls_ca};
            if (!flags.tls.on()) flags.tls = TlsFromEnvironment();
            flags.program = "cistern_ps (Python)";
            return Fleet::Open(flags, state_root);
          },
          "servers"_a, "embedded"_a, "state_root"_a, "memory_limit_mb"_a, "pass_caches"_a,
          "cluster"_a, "timeout"_a, "take_over"_a, "tls_ca"_a, "tls_cert"_a, "tls_key"_a)
      .def("close",
           [](Fleet& f) {
             std::shared_ptr<app::FleetSession> session = f.Close();
             ReleaseGil no_gil;
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
      .def("begin", [](Fleet& f) { f.Run([&f](ParameterClient& c) { return f.Begin(c); }); })
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
