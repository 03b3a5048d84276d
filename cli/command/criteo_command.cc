// cistern data criteo: the command for app/data/criteo_data.h.
#include "app/data/criteo_data.h"

#include <memory>

#include "absl/strings/str_join.h"
#include "app/data/convert_data.h"
#include "cli/command/data_commands.h"
#include "cli/command/job_console.h"
#include "cli/command/shared_flags.h"

namespace cistern::cli {
namespace {

struct CriteoFlags {
  app::CriteoDataOptions options;
  data::MultiHotOptions multi_hot;
  std::string format = "norm", check = "sum", key_bits = "32", distribution = "uniform";
  std::string dense = "log3";
  uint64_t multi_hot_size = 0;
  bool no_shuffle = false;
};

absl::StatusOr<app::CriteoDataOptions> CriteoOptionsOf(const CriteoFlags& flags) {
  app::CriteoDataOptions options = flags.options;
  CISTERN_ASSIGN_OR_RETURN(options.format, data::FormatOfName(flags.format));
  options.check = ValueOf(flags.check, app::kNormChecks);
  options.wide_keys = flags.key_bits == "64";
  options.shuffle = !flags.no_shuffle;
  options.dense = ValueOf(flags.dense, app::kCriteoDense);
  if (flags.multi_hot_size == 0) return options;
  options.multi_hot = flags.multi_hot;
  options.multi_hot->size =
      static_cast<uint32_t>(std::min<uint64_t>(flags.multi_hot_size, UINT32_MAX));
  options.multi_hot->distribution = flags.distribution == "pareto"
                                        ? data::MultiHotDistribution::kPareto
                                        : data::MultiHotDistribution::kUniform;
  return options;
}

const char* ClippedText(data::CriteoDense dense) {
  switch (dense) {
    case data::CriteoDense::kLog3:
      return "below -2 were set to -2";
    case data::CriteoDense::kLog1:
      return "below 0 were set to 0";
    case data::CriteoDense::kMinMax:
      break;
  }
  return "of the last day were outside the range of the other days and clipped to it";
}

absl::StatusOr<Report> RunCriteo(const CriteoFlags& flags, Console& console) {
  CISTERN_ASSIGN_OR_RETURN(const app::CriteoDataOptions options, CriteoOptionsOf(flags));
  const absl::StatusOr<app::CriteoData> data = app::PrepareCriteoData(options, RowCallsOn(console));
  console.Update("");
  if (!data.ok()) return data.status();
  Report report;
  report.json = app::JsonOf(*data);
  report.text = absl::StrCat(
      data->train_samples, " training samples (", data->train_positives, " positive), ",
      data->test_samples, " test samples (", data->test_positives, " positive); ", data->clipped,
      " dense features ", ClippedText(options.dense), "\n",
      data->crosses == 0
          ? ""
          : absl::StrCat("slots: ", data->wide_slots, " for the wide part (", data->crosses,
                         " crosses), then 26: two inputs of the model's Data layer\n"),
      "in the model file: \"format\": \"", data::FormatName(data->format), "\", \"source\": \"",
      data->train_source, "\", \"eval_source\": \"", data->test_source,
      "\", \"dense_dim\": 13, \"slot_num\": ", data->wide_slots + data::kCriteoSparse,
      ", \"slot_size_array\": [", absl::StrJoin(data->slot_sizes, ", "), "]",
      data->format == data::DataFormat::kRaw ? ", \"float_label_dense\": true" : "", "\n");
  return report;
}

}  // namespace

void AddCriteoCommand(Command& data) {
  auto flags = std::make_shared<CriteoFlags>();
  app::CriteoDataOptions& options = flags->options;
  Command& command = data.Add(
      "criteo", "Prepares Criteo's logs as DLRM does: ids per column, the last day as test data.",
      "cistern data criteo day_0 day_1 day_2 --out data/criteo");
  command.Arguments("DAY", &options.days,
                    {"FILE...", "TSV files of days, in order; the last day is the test data.",
                     "day_0 day_1 day_2", kRequired});
  command.Flag("--out", &options.out,
               {"DIR", "Folder to create: train, test, ids. Appears whole or not at all.",
                "--out data/criteo", kRequired});
  command.Switch("--overwrite", &options.overwrite,
                 {"", "Replaces an existing data set.", "--overwrite"});
  command.Choice("--format", &flags->format,
                 {"norm|raw|parquet", "Format to write; raw: as floats.", "--format raw"});
  command.Choice("--check", &flags->check,
                 {"sum|none", "Norm: sum adds a check byte to every record.", "--check none"});
  command.Choice("--key-bits", &flags->key_bits,
                 {"32|64", "Norm: width of keys.", "--key-bits 64"});
  command.Flag("--gzip-max-ratio", &options.gzip_max_ratio,
               {"INT", "Largest unpacked size of a gzip file, as a multiple of its own size.",
                "--gzip-max-ratio 500"});
  command.Flag("--gzip-max-mb", &options.gzip_max_mb,
               {"MIB", "Largest unpacked size of a gzip file, in MiB.", "--gzip-max-mb 100000"});
  command.Flag("--samples-per-file", &options.samples_per_file,
               {"INT", "Norm, Parquet: samples per file.", "--samples-per-file 40960"});
  command.Switch("--no-shuffle", &flags->no_shuffle,
                 {"", "Keeps the training data in the order of the days.", "--no-shuffle"});
  command.Flag("--seed", &options.seed, {"INT", "Seed of the shuffle.", "--seed 7"});
  command.Flag(
      "--memory-mb", &options.memory_mb,
      {"INT", "Memory in MiB for value tables and for shuffling rows.", "--memory-mb 4096"});
  command.Flag("--threads", &options.threads,
               ThreadsText("Number of threads, which does not affect the output"));
  command.Choice("--dense", &flags->dense,
                 {"log3|log1|minmax",
                  "Transform of a dense number x: ln(x + 3), ln(x + 1), or x scaled by the minimum "
                  "and maximum of the training days.",
                  "--dense minmax"});
  command.Flag(
      "--min-count", &options.min_count,
      {"INT", "Values that occur in fewer rows over all days share id 1.", "--min-count 6"});
  command.List(
      "--cross", &options.cross, true,
      {"A_B,...", "Pairs of columns to cross; the crosses form a wide part before the other slots.",
       "--cross C1_C2,C3_C4"});
  command.Flag("--multi-hot-size", &flags->multi_hot_size,
               {"INT", "Norm: keys per slot of a large column; 0: one key.", "--multi-hot-size 3"});
  command.Flag("--multi-hot-min-table-size", &flags->multi_hot.min_table_size,
               {"INT", "Columns with fewer ids stay one-hot.", "--multi-hot-min-table-size 200"});
  command.Choice("--multi-hot-distribution", &flags->distribution,
                 {"uniform|pareto", "Distribution of the additional keys.",
                  "--multi-hot-distribution pareto"});
  command.Switch("--multi-hot-frequencies", &flags->multi_hot.count_frequencies,
                 {"", "Writes how often each value occurs before and after to frequencies.tsv.",
                  "--multi-hot-frequencies"});
  command.Does([flags](Console& console) { return RunCriteo(*flags, console); });
}

}  // namespace cistern::cli
