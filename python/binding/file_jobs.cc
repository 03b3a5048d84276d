#include "python/binding/module.h"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "app/export/export_cache.h"
#include "app/export/export_dnn_plugin.h"
#include "app/export/export_hugectr.h"
#include "app/export/export_onnx.h"
#include "app/export/export_serving.h"
#include "app/export/export_xbox.h"
#include "app/fleet/fleet_status.h"
#include "app/plan/plan.h"
#include "app/state/apply_changes.h"
#include "app/state/save_changes.h"
#include "app/state/state_diff.h"
#include "app/state/state_listing.h"
#include "app/verify/verify.h"
#include "common/saved_model/increment.h"
#include "common/value/value_layout.h"
#include "python/binding/arrays.h"
#include "python/binding/errors.h"
#include "python/binding/gil.h"
#include "python/binding/job_run.h"
#include "python/binding/keywords.h"

namespace cistern::python {
namespace {

using namespace nb::literals;  // NOLINT
using Json = nlohmann::ordered_json;
using Path = std::filesystem::path;  // of any bytes, as os.fsencode makes them

std::string PlanRun(const Path& model, const std::vector<std::string>& set,
                    const std::map<std::string, uint64_t>& rows, uint64_t servers, uint64_t workers,
                    uint64_t memory_limit_mb, nb::object on_line) {
  app::ModelOptions of_model;
  of_model.config = model.string();
  of_model.set = set;
  app::PlanOptions options{rows, servers, workers, memory_limit_mb};
  return RunJob(
      std::move(on_line),
      [of_model, options](const app::JobCalls& calls) mutable -> absl::StatusOr<Json> {
        std::string unused;
        CISTERN_RETURN_IF_ERROR(app::ResolveRunFolder(&of_model, &unused));
        CISTERN_ASSIGN_OR_RETURN(const model::ModelConfig config, app::ReadModelConfig(of_model));
        CISTERN_ASSIGN_OR_RETURN(const app::PlanResult plan, app::Plan(config, options, calls));
        return app::JsonOf(plan);
      });
}

std::string DiffRun(const Path& a, const Path& b, uint64_t rows, uint64_t threads,
                    nb::object on_line) {
  const app::DiffOptions options{a.string(), b.string(), rows, threads};
  return RunJob(std::move(on_line), [options](const app::JobCalls& calls) -> absl::StatusOr<Json> {
    CISTERN_ASSIGN_OR_RETURN(const app::DiffResult result, app::Diff(options, calls));
    return app::JsonOf(result);
  });
}

v1::SaveFormat FormatOf(const std::string& name, bool gzip) {
  v1::SaveFormat format;
  if (name != "text" && name != "binary") {
    throw StatusError(absl::InvalidArgumentError(
        absl::StrCat("format='", name, "': expected 'text' or 'binary'")));
  }
  if (name == "binary") format.set_kind(v1::SaveFormat::BINARY);
  format.set_gzip(gzip);
  return format;
}

std::string SaveChangesRun(const Path& state, const std::vector<Path>& since, const Path& out,
                           const std::string& format, bool gzip, nb::object on_line) {
  app::SaveChangesOptions options{state.string(), {}, out.string(), FormatOf(format, gzip)};
  for (const Path& place : since) options.since.push_back(place.string());
  return RunJob(std::move(on_line), [options](const app::JobCalls& calls) -> absl::StatusOr<Json> {
    CISTERN_ASSIGN_OR_RETURN(const app::SavedChanges saved, app::SaveChanges(options, calls));
    return app::JsonOf(saved);
  });
}

std::string ApplyChangesRun(const Path& base, const std::vector<Path>& increments, const Path& out,
                            nb::object on_line) {
  app::ApplyChangesOptions options{base.string(), {}, out.string()};
  for (const Path& folder : increments) options.increments.push_back(folder.string());
  return RunJob(std::move(on_line), [options](const app::JobCalls& calls) -> absl::StatusOr<Json> {
    CISTERN_ASSIGN_OR_RETURN(const app::AppliedChanges applied, app::ApplyChanges(options, calls));
    return app::JsonOf(applied);
  });
}

// One sparse table of an increment: the changed keys, their weights [n, dim], and the keys that
// went.
struct ChangedTable {
  std::string name;
  std::vector<Key> keys, removed;
  std::vector<float> weights;
  uint32_t dim = 0;
};

absl::StatusOr<ChangedTable> ReadChangedTable(FileSystem& files, const std::string& folder,
                                              const v1::Increment& increment, TableId id) {
  const v1::TableSpec& spec = increment.schema().tables(static_cast<int>(id));
  CISTERN_ASSIGN_OR_RETURN(const ValueLayout stored, ValueLayout::CreateStored(spec));
  const ValueLayout& layout = stored.unpacked();
  ValueUnpacker unpack(stored);
  ChangedTable table{spec.name(), {}, {}, {}, layout.dim()};
  CISTERN_RETURN_IF_ERROR(ReadIncrementRows(
      files, folder, increment, id, [&](Key key, const float* value, bool has_embedx) {
        table.keys.push_back(key);
        const float* const weights = unpack(value) + layout.weight_index();
        for (uint32_t i = 0; i < table.dim; ++i) {
          table.weights.push_back(has_embedx ? weights[i] : 0.0f);
        }
        return absl::OkStatus();
      }));
  CISTERN_RETURN_IF_ERROR(ReadIncrementRemoved(files, folder, increment, id, [&](Key key) {
    table.removed.push_back(key);
    return absl::OkStatus();
  }));
  return table;
}

// {table: (keys, weights, removed)}.
nb::dict ReadChanges(const Path& path) {
  const std::string folder = path.string();
  std::vector<ChangedTable> tables;
  const absl::Status status = [&]() -> absl::Status {
    const ReleaseGil release;
    LocalFileSystem files;
    CISTERN_ASSIGN_OR_RETURN(const v1::Increment increment, ReadIncrement(files, folder));
    for (TableId id = 0; id < static_cast<TableId>(increment.schema().tables_size()); ++id) {
      CISTERN_ASSIGN_OR_RETURN(tables.emplace_back(),
                               ReadChangedTable(files, folder, increment, id));
    }
    return absl::OkStatus();
  }();
  if (!status.ok()) {
    throw StatusError(absl::IsDataLoss(status) ? WithKind(status, ErrorKind::kBadCheckpoint)
                                               : status);
  }
  nb::dict found;
  for (ChangedTable& table : tables) {
    const size_t n = table.keys.size();
    found[table.name.c_str()] = nb::make_tuple(ToNumpy(std::move(table.keys)),
                                               ToNumpy(std::move(table.weights), {n, table.dim}),
                                               ToNumpy(std::move(table.removed)));
  }
  return found;
}

std::string VerifyRun(const Path& path, uint64_t commit, bool all, uint64_t threads,
                      nb::object on_line) {
  const app::VerifyOptions options{path.string(), commit, all, threads};
  const auto outcome = std::make_shared<absl::Status>();
  const std::string report = RunJob(
      std::move(on_line), [options, outcome](const app::JobCalls& calls) -> absl::StatusOr<Json> {
        CISTERN_ASSIGN_OR_RETURN(const app::VerifyResult result, app::Verify(options, calls));
        *outcome = result.outcome();
        return app::JsonOf(result);
      });
  if (!outcome->ok()) throw StatusError(*outcome, report);
  return report;
}

std::string CommitsRun(const Path& path) {
  const auto outcome = std::make_shared<absl::Status>();
  const std::string report =
      RunJob(nb::none(), [path, outcome](const app::JobCalls&) -> absl::StatusOr<Json> {
        CISTERN_ASSIGN_OR_RETURN(const app::StateListing listing, app::ListState(path.string()));
        *outcome = listing.outcome();
        return app::JsonOf(listing);
      });
  if (!outcome->ok()) throw StatusError(*outcome, report);
  return report;
}

std::string StatusRun(const std::string& servers, bool digest) {
  app::FleetStatusOptions options;
  options.servers = servers;
  options.tls = TlsFromEnvironment();
  options.digest = digest;
  const auto outcome = std::make_shared<absl::Status>();
  const std::string report =
      RunJob(nb::none(), [options, outcome](const app::JobCalls&) -> absl::StatusOr<Json> {
        CISTERN_ASSIGN_OR_RETURN(const app::FleetStatus status, app::AskFleet(options));
        *outcome = status.outcome();
        return app::JsonOf(status);
      });
  if (!outcome->ok()) throw StatusError(*outcome, report);
  return report;
}

// --- exports. Each reads its own keywords; `Run` reads those of all, and runs `exporter`.

constexpr std::initializer_list<std::pair<const char*, SequenceForm>> kSequenceForms = {
    {"cube", SequenceForm::kCube}, {"hadoop", SequenceForm::kHadoop}};

struct ExportCall {
  std::string form;
  app::ExportOptions source;
  Keywords keywords;
  nb::object on_line;

  template <class Options, class Exported>
  std::string Run(Options options,
                  absl::StatusOr<Exported> (*exporter)(const Options&, const app::JobCalls&)) {
    keywords.ReadPath("model", &source.model_dir);
    keywords.Read("threads", &source.model.threads);
    keywords.Read("cluster", &source.model.fleet.cluster);
    keywords.Read("connect_timeout", &source.model.fleet.connect_timeout);
    keywords.CheckAllRead(absl::StrCat("export with form='", form, "'"));
    options.source = source;
    return RunJob(std::move(on_line),
                  [options = std::move(options),
                   exporter](const app::JobCalls& calls) -> absl::StatusOr<Json> {
                    CISTERN_ASSIGN_OR_RETURN(const Exported exported, exporter(options, calls));
                    return app::JsonOf(exported);
                  });
  }
};

std::string RunServing(ExportCall call) {
  app::ServingExport options;
  call.keywords.ReadPath("out", &options.version.out);
  call.keywords.ReadWord("precision",
                         {{"float32", RowPrecision::kFloat32},
                          {"float16", RowPrecision::kFloat16},
                          {"bfloat16", RowPrecision::kBfloat16},
                          {"int8", RowPrecision::kInt8}},
                         &options.version.precision);
  call.keywords.Read("keep", &options.version.keep);
  call.keywords.ReadPath("recipe", &options.version.recipe);
  call.keywords.Read("name", &options.version.name);
  call.keywords.ReadPaths("check_data", &options.check_data);
  double limit = std::numeric_limits<double>::quiet_NaN();  // not given
  call.keywords.Read("max_auc_loss", &limit);
  if (!std::isnan(limit)) options.max_auc_loss = limit;
  return call.Run(std::move(options), app::ExportServing);
}

std::string RunHugectr(ExportCall call) {
  app::HugectrExport options;
  call.keywords.ReadPath("out", &options.out);
  call.keywords.ReadWord("version", {{"v2", HugectrForm::kV2}, {"v3", HugectrForm::kV3}},
                         &options.form);
  call.keywords.Read("iteration", &options.iteration);
  return call.Run(std::move(options), app::ExportHugectr);
}

std::string RunOnnx(ExportCall call) {
  app::OnnxExport options;
  call.keywords.ReadPath("out", &options.place.path);
  call.keywords.Read("logit", &options.place.with_logit);
  return call.Run(std::move(options), app::ExportOnnx);
}

std::string RunXbox(ExportCall call) {
  app::XboxExport options;
  call.keywords.ReadPath("out", &options.out);
  call.keywords.ReadWord("kind", {{"base", v1::BASE}, {"delta", v1::DELTA}}, &options.kind);
  call.keywords.ReadWord("seqfile", kSequenceForms, &options.format.form);
  call.keywords.ReadWord("compress",
                         {{"none", SequenceCompression::kNone},
                          {"record", SequenceCompression::kRecord},
                          {"block", SequenceCompression::kBlock}},
                         &options.format.compression);
  call.keywords.Read("files", &options.files);
  call.keywords.Read("tables", &options.tables);
  call.keywords.Read("update", &options.update);
  call.keywords.Read("day", &options.day);
  call.keywords.Read("take_over", &call.source.model.fleet.take_over);
  return call.Run(std::move(options), app::ExportXbox);
}

std::string RunCache(ExportCall call) {
  app::CacheExport options;
  call.keywords.ReadPath("out", &options.out);
  call.keywords.Read("rate", &options.rate);
  call.keywords.Read("memory_cache", &options.memory_cache);
  call.keywords.Read("files", &options.files);
  call.keywords.Read("seed", &options.seed);
  call.keywords.ReadWord("seqfile", kSequenceForms, &options.form);
  call.keywords.Read("tables", &options.tables);
  call.keywords.Read("day", &options.day);
  return call.Run(std::move(options), app::ExportCache);
}

std::string RunDnnPlugin(ExportCall call) {
  app::DnnPluginExport options;
  call.keywords.ReadPath("out", &options.out);
  return call.Run(std::move(options), app::ExportDnnPlugin);
}

struct Form {
  const char* name;
  std::string (*run)(ExportCall call);
};
constexpr Form kForms[] = {{"serving", RunServing}, {"hugectr", RunHugectr},
                           {"onnx", RunOnnx},       {"xbox", RunXbox},
                           {"cache", RunCache},     {"dnn_plugin", RunDnnPlugin}};

std::string ExportRun(const std::string& form, const Path& model,
                      const std::vector<std::string>& set, const Path& state,
                      const std::string& servers, nb::dict options, nb::object on_line) {
  app::ExportOptions source;
  source.model.config = model.string();
  source.model.set = set;
  source.state = state.string();
  source.model.fleet.servers = servers;
  source.model.fleet.tls = TlsFromEnvironment();
  source.model.fleet.program = "cistern_ps.export";
  std::vector<std::string> names;
  for (const Form& one : kForms) {
    if (form == one.name) {
      return one.run({form, source, Keywords(std::move(options)), std::move(on_line)});
    }
    names.emplace_back(one.name);
  }
  throw StatusError(absl::InvalidArgumentError(
      absl::StrCat("form='", form, "': expected one of ", absl::StrJoin(names, ", "))));
}

}  // namespace

void BindFileJobs(nb::module_& module) {
  module.def("plan_run", &PlanRun, "model"_a, "set"_a, "rows"_a, "servers"_a, "workers"_a,
             "memory_limit_mb"_a, "on_line"_a.none());
  module.def("diff_run", &DiffRun, "a"_a, "b"_a, "rows"_a, "threads"_a, "on_line"_a.none());
  module.def("save_changes_run", &SaveChangesRun, "state"_a, "since"_a, "out"_a, "format"_a,
             "gzip"_a, "on_line"_a.none());
  module.def("apply_changes_run", &ApplyChangesRun, "base"_a, "increments"_a, "out"_a,
             "on_line"_a.none());
  module.def("read_changes", &ReadChanges, "folder"_a);
  module.def("verify_run", &VerifyRun, "path"_a, "commit"_a, "all"_a, "threads"_a,
             "on_line"_a.none());
  module.def("commits_run", &CommitsRun, "path"_a);
  module.def("status_run", &StatusRun, "servers"_a, "digest"_a);
  module.def("export_run", &ExportRun, "form"_a, "model"_a, "set"_a, "state"_a, "servers"_a,
             "options"_a, "on_line"_a.none());
}

}  // namespace cistern::python
