#include "python/binding/text_jobs.h"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "app/data/convert_data.h"
#include "app/data/criteo_data.h"
#include "app/data/generate_data.h"
#include "app/data/pack_data.h"
#include "app/data/table_file.h"
#include "app/data/table_head.h"
#include "app/run/run_folder.h"
#include "python/binding/errors.h"

namespace cistern::python {
namespace {

using namespace nb::literals;  // NOLINT
using Json = nlohmann::ordered_json;
using Path = std::filesystem::path;  // of any bytes, as os.fsencode makes them

void ReadThreshold(Keywords* keywords, std::optional<double>* threshold) {
  double number = std::numeric_limits<double>::quiet_NaN();
  keywords->Read("label_threshold", &number);
  if (!std::isnan(number)) *threshold = number;
}

void ReadDataFormat(Keywords* keywords, data::DataFormat* format) {
  keywords->ReadWord("format",
                     {{"norm", data::DataFormat::kNorm},
                      {"raw", data::DataFormat::kRaw},
                      {"parquet", data::DataFormat::kParquet}},
                     format);
}

app::ConvertDataOptions ReadConvertOptions(Keywords* keywords) {
  app::ConvertDataOptions options;
  keywords->ReadPath("recipe", &options.recipe);
  keywords->Read("extend", &options.extend);
  keywords->ReadWord("format", data::TextFormatWords(), &options.format);
  keywords->ReadCharacter("delimiter", &options.delimiter);
  keywords->ReadNames("columns", &options.columns);
  keywords->ReadNames("add_column", &options.add_columns);
  keywords->Read("trim", &options.trim);
  keywords->ReadNames("missing_values", &options.missing_values);
  keywords->Read("skip_rows", &options.skip_rows);
  keywords->Read("max_rows", &options.max_rows);
  keywords->ReadWord("part", app::kDataParts, &options.part);
  keywords->ReadWord("libsvm_slots", app::kLibsvmSlots, &options.libsvm_slots);
  keywords->Read("any_value", &options.any_value);
  keywords->ReadNames("label", &options.label);
  keywords->Read("negative_rate", &options.negative_rate);
  ReadThreshold(keywords, &options.label_threshold);
  keywords->Read("positive", &options.positive);
  keywords->Read("weight", &options.weight);
  keywords->ReadNames("dense", &options.dense);
  keywords->ReadWord("dense_transform", app::kDenseTransforms, &options.dense_transform);
  keywords->ReadNames("log1p", &options.log1p);
  double dense_missing = options.dense_missing;
  keywords->Read("dense_missing", &dense_missing);
  options.dense_missing = static_cast<decltype(options.dense_missing)>(dense_missing);
  keywords->ReadNames("sparse", &options.sparse);
  keywords->ReadNames("bucket", &options.bucket);
  keywords->ReadGroups("cross", &options.cross);
  keywords->ReadGroups("share", &options.share);
  keywords->ReadNames("ignore", &options.ignore);
  keywords->ReadNames("multi", &options.multi);
  keywords->ReadNames("key_weights", &options.key_weights);
  keywords->ReadCharacter("separator", &options.separator);
  keywords->ReadWord("keys", app::kKeyModes, &options.keys);
  uint64_t key_bits = 64;
  keywords->Read("key_bits", &key_bits);
  options.key_bits = key_bits > 64 ? 0 : static_cast<int>(key_bits);  // 0 is refused, too
  keywords->ReadWord("missing", app::kStandIns, &options.missing);
  keywords->ReadWord("rare", app::kStandIns, &options.rare);
  keywords->Read("min_count", &options.min_count);
  keywords->Read("fit_rows", &options.fit_rows);
  keywords->ReadPath("vocab_out", &options.vocab_out);
  keywords->ReadPath("vocab_in", &options.vocab_in);
  keywords->Read("overwrite", &options.overwrite);
  keywords->ReadWord("check", app::kNormChecks, &options.check);
  keywords->Read("samples_per_file", &options.samples_per_file);
  keywords->CheckAllRead("data.convert");
  return options;
}

std::string ConvertRun(const std::vector<Path>& input, const Path& out, nb::dict given,
                       nb::object on_line) {
  Keywords keywords(std::move(given));
  app::ConvertDataOptions options = ReadConvertOptions(&keywords);
  options.input = TextsOf(input);
  options.out = out.string();
  return RunJob(std::move(on_line), [options](const app::JobCalls& calls) -> absl::StatusOr<Json> {
    CISTERN_ASSIGN_OR_RETURN(const data::ConvertSummary summary, app::ConvertData(options, calls));
    return app::JsonOf(summary);
  });
}

std::string GenerateRun(const Path& out, nb::dict given) {
  Keywords keywords(std::move(given));
  app::GenerateDataOptions options;
  options.out = out.string();
  ReadDataFormat(&keywords, &options.format);
  keywords.Read("labels", &options.labels);
  keywords.Read("dense", &options.dense);
  keywords.Read("slots", &options.slots);
  keywords.ReadWord("check", app::kNormChecks, &options.check);
  uint64_t key_bits = 64, max_nnz = 1;
  keywords.Read("key_bits", &key_bits);
  options.key_bits = key_bits == 32 ? 32 : 64;
  keywords.Read("max_nnz", &max_nnz);
  options.max_nnz = static_cast<uint32_t>(std::min<uint64_t>(max_nnz, 1000000));
  keywords.Read("slot_sizes", &options.slot_sizes);
  keywords.ReadWord(
      "keys",
      {{"power", data::KeyDistribution::kPowerLaw}, {"uniform", data::KeyDistribution::kUniform}},
      &options.keys);
  keywords.Read("alpha", &options.alpha);
  keywords.Read("samples", &options.train_samples);
  keywords.Read("test_samples", &options.test_samples);
  keywords.Read("samples_per_file", &options.samples_per_file);
  keywords.Read("float_label_dense", &options.float_label_dense);
  keywords.CheckAllRead("generate");
  return RunJob(nb::none(), [options](const app::JobCalls& calls) -> absl::StatusOr<Json> {
    CISTERN_ASSIGN_OR_RETURN(
        const app::GeneratedData made,
        app::GenerateData(options, [&](uint64_t) { return calls.CheckStop().ok(); }));
    return app::JsonOf(made);
  });
}

std::string PackRun(const std::vector<Path>& input, const Path& out, nb::dict given) {
  Keywords keywords(std::move(given));
  app::PackDataOptions options;
  options.input = TextsOf(input);
  options.out = out.string();
  keywords.ReadWord("format", data::TextFormatWords(/*packed=*/true), &options.format);
  keywords.ReadCharacter("delimiter", &options.delimiter);
  keywords.ReadNames("columns", &options.columns);
  keywords.ReadNames("multi", &options.multi);
  keywords.ReadCharacter("separator", &options.separator);
  keywords.Read("numbers", &options.numbers);
  keywords.Read("overwrite", &options.overwrite);
  keywords.Read("name", &options.name);
  keywords.Read("samples_per_shard", &options.samples_per_shard);
  keywords.Read("bytes_per_shard", &options.bytes_per_shard);
  keywords.ReadNames("groups", &options.group_texts);
  keywords.Read("length_column", &options.length_column);
  keywords.ReadWord("on_bad_row", {{"stop", false}, {"skip", true}}, &options.skip_bad);
  keywords.ReadPath("model", &options.model);
  keywords.Read("set", &options.set);
  keywords.CheckAllRead("data.pack");
  return RunJob(nb::none(), [options](const app::JobCalls& calls) -> absl::StatusOr<Json> {
    CISTERN_ASSIGN_OR_RETURN(const data::PackSummary summary, app::PackData(options, calls));
    return app::JsonOf(summary);
  });
}

void ReadMultiHot(Keywords* keywords, std::optional<data::MultiHotOptions>* multi_hot) {
  uint64_t size = 0;
  data::MultiHotOptions options;
  keywords->Read("multi_hot_size", &size);
  keywords->Read("multi_hot_min_table_size", &options.min_table_size);
  keywords->ReadWord("multi_hot_distribution",
                     {{"uniform", data::MultiHotDistribution::kUniform},
                      {"pareto", data::MultiHotDistribution::kPareto}},
                     &options.distribution);
  keywords->Read("multi_hot_frequencies", &options.count_frequencies);
  if (size == 0) return;
  options.size = static_cast<uint32_t>(std::min<uint64_t>(size, UINT32_MAX));
  *multi_hot = options;
}

std::string CriteoRun(const std::vector<Path>& days, const Path& out, nb::dict given) {
  Keywords keywords(std::move(given));
  app::CriteoDataOptions options;
  options.days = TextsOf(days);
  options.out = out.string();
  keywords.Read("overwrite", &options.overwrite);
  ReadDataFormat(&keywords, &options.format);
  keywords.ReadWord("check", app::kNormChecks, &options.check);
  uint64_t key_bits = 32;
  keywords.Read("key_bits", &key_bits);
  options.wide_keys = key_bits == 64;
  keywords.Read("samples_per_file", &options.samples_per_file);
  keywords.Read("shuffle", &options.shuffle);
  keywords.Read("seed", &options.seed);
  keywords.Read("memory_mb", &options.memory_mb);
  keywords.Read("threads", &options.threads);
  keywords.ReadWord("dense", app::kCriteoDense, &options.dense);
  keywords.Read("min_count", &options.min_count);
  keywords.ReadNames("cross", &options.cross);
  keywords.Read("gzip_max_ratio", &options.gzip_max_ratio);
  keywords.Read("gzip_max_mb", &options.gzip_max_mb);
  ReadMultiHot(&keywords, &options.multi_hot);
  keywords.CheckAllRead("data.criteo");
  return RunJob(
      nb::none(), [options, key_bits](const app::JobCalls& calls) -> absl::StatusOr<Json> {
        if (key_bits != 32 && key_bits != 64) {
          return WithOptions(
              absl::InvalidArgumentError(absl::StrCat(key_bits, " bits: expected 32 or 64")),
              {"key_bits"});
        }
        CISTERN_ASSIGN_OR_RETURN(const app::CriteoData data,
                                 app::PrepareCriteoData(options, calls));
        return app::JsonOf(data);
      });
}

absl::StatusOr<std::string> JoinedTables(const std::vector<std::string>& files) {
  if (files.empty()) return absl::InvalidArgumentError("the list of tables is empty: name a file");
  return app::JoinTables(files.front(), {files.begin() + 1, files.end()});
}

std::string HeadRun(const std::vector<Path>& tables, nb::dict given) {
  Keywords keywords(std::move(given));
  app::TableHeadOptions options;
  keywords.Read("rows", &options.rows);
  keywords.ReadCharacter("delimiter", &options.delimiter);
  keywords.ReadNames("columns", &options.columns);
  keywords.ReadNames("add_column", &options.add_columns);
  keywords.CheckAllRead("data.head");
  const std::vector<std::string> files = TextsOf(tables);
  return RunJob(nb::none(), [options, files](const app::JobCalls&) mutable -> absl::StatusOr<Json> {
    CISTERN_ASSIGN_OR_RETURN(options.table, JoinedTables(files));
    CISTERN_ASSIGN_OR_RETURN(const app::TableHead head, app::ReadTableHead(options));
    return app::JsonOf(head);
  });
}

std::string InitRun(const std::vector<Path>& tables, const Path& out, bool overwrite,
                    nb::dict given, nb::object on_line) {
  Keywords keywords(std::move(given));
  app::InitOptions options;
  options.how = ReadTableOptions(&keywords);
  keywords.CheckAllRead("init");
  options.out = out.string();
  options.overwrite = overwrite;
  const std::vector<std::string> files = TextsOf(tables);
  return RunJob(std::move(on_line),
                [options, files](const app::JobCalls& calls) mutable -> absl::StatusOr<Json> {
                  CISTERN_ASSIGN_OR_RETURN(options.table, JoinedTables(files));
                  CISTERN_ASSIGN_OR_RETURN(const app::InspectedTable table,
                                           app::InitModel(options, calls));
                  Json json = app::JsonOf(table);
                  json["model"] = absl::StrCat(options.out, "/", app::kRunModelFile);
                  json["recipe"] = absl::StrCat(options.out, "/", data::kRecipeFile);
                  return json;
                });
}

}  // namespace

std::vector<std::string> TextsOf(const std::vector<std::filesystem::path>& paths) {
  return {paths.begin(), paths.end()};
}

app::TableOptions ReadTableOptions(Keywords* keywords) {
  app::TableOptions options;
  data::TableWishes& wishes = options.wishes;
  std::vector<std::string> labels;
  keywords->Read("label", &labels);
  wishes.label = absl::StrJoin(labels, ",");
  keywords->Read("positive", &wishes.positive);
  ReadThreshold(keywords, &wishes.label_threshold);
  keywords->Read("weight", &wishes.weight);
  keywords->ReadNames("dense", &wishes.dense);
  keywords->ReadNames("sparse", &wishes.sparse);
  keywords->ReadNames("ignore", &wishes.ignore);
  keywords->ReadGroups("cross", &wishes.cross);
  keywords->ReadGroups("share", &wishes.share);
  keywords->ReadNames("multi", &wishes.multi);
  keywords->ReadNames("key_weights", &wishes.key_weights);
  keywords->ReadCharacter("separator", &wishes.separator);
  keywords->Read("min_count", &wishes.min_count);
  keywords->ReadCharacter("delimiter", &options.delimiter);
  keywords->ReadNames("columns", &options.columns);
  keywords->ReadNames("add_column", &options.add_columns);
  keywords->Read("negative_rate", &options.negative_rate);
  keywords->Read("model", &options.model);
  return options;
}

app::TableCalls TableCallsOf(const Listener& listener) {
  app::TableCalls calls;
  static_cast<app::JobCalls&>(calls) = listener.calls();
  const app::OnNote note = calls.note;
  if (note == nullptr) return calls;
  calls.inspected = [note](const app::InspectedTable& table) {
    note(absl::StrCat("note: label '", table.profile.columns[table.plan.label.column].name, "', ",
                      table.plan.slots, " slots, ", table.plan.dense, " dense features, ",
                      table.profile.rows, " rows"));
  };
  calls.other_columns = [note](const app::OtherColumns& others) {
    note(absl::StrCat("note: ", others.file, " has columns that this model does not read: ",
                      absl::StrJoin(others.columns, ", "),
                      ". To use them, train a new run on the tables of all days, with these "
                      "columns as add_column"));
  };
  return calls;
}

void BindTextJobs(nb::module_& module) {
  module.def("convert_run", &ConvertRun, "input"_a, "out"_a, "options"_a, "on_line"_a.none());
  module.def("pack_run", &PackRun, "input"_a, "out"_a, "options"_a);
  module.def("criteo_run", &CriteoRun, "days"_a, "out"_a, "options"_a);
  module.def("generate_run", &GenerateRun, "out"_a, "options"_a);
  module.def("head_run", &HeadRun, "tables"_a, "options"_a);
  module.def("init_run", &InitRun, "tables"_a, "out"_a, "overwrite"_a, "options"_a,
             "on_line"_a.none());
  module.def(
      "is_table", [](const Path& path) { return app::IsTable(path.string()); }, "path"_a);
}

}  // namespace cistern::python
