// cistern data criteo: the flags of worker/data/criteo.h.
#include <memory>

#include "absl/strings/str_join.h"
#include "cli/data_commands.h"
#include "cli/interrupt.h"
#include "cli/progress.h"
#include "worker/data/criteo.h"

namespace cistern {
namespace {

struct CriteoFlags {
  CriteoOptions options;
  MultiHotOptions multi_hot;
  std::string format = "norm", check = "sum", key_bits = "32", distribution = "uniform";
  uint64_t multi_hot_size = 0;
  bool no_shuffle = false;
};

CriteoOptions OptionsOf(const CriteoFlags& flags) {
  CriteoOptions options = flags.options;
  options.format = FormatOfName(flags.format);
  options.check = flags.check == "sum" ? NormCheck::kSum : NormCheck::kNone;
  options.wide_keys = flags.key_bits == "64";
  options.shuffle = !flags.no_shuffle;
  if (flags.multi_hot_size == 0) return options;
  options.multi_hot = flags.multi_hot;
  options.multi_hot->size =
      static_cast<uint32_t>(std::min<uint64_t>(flags.multi_hot_size, UINT32_MAX));
  options.multi_hot->distribution = flags.distribution == "pareto" ? MultiHotDistribution::kPareto
                                                                   : MultiHotDistribution::kUniform;
  return options;
}

absl::StatusOr<Report> RunCriteo(const CriteoFlags& flags, Console& console) {
  const CriteoOptions options = OptionsOf(flags);
  const std::atomic<bool>* interrupted = CatchInterrupts();
  const absl::StatusOr<CriteoSummary> summary = PrepareCriteo(options, [&](uint64_t rows) {
    console.Update(absl::StrCat("reading  ", CountText(static_cast<double>(rows)), " rows"));
    return !interrupted->load();
  });
  console.Update("");
  if (!summary.ok()) return summary.status();
  Report report;
  report.json = {
      {"format", FormatName(options.format)},      {"source", summary->train_source},
      {"eval_source", summary->test_source},       {"train_samples", summary->train_samples},
      {"test_samples", summary->test_samples},     {"train_positives", summary->train_positives},
      {"test_positives", summary->test_positives}, {"clipped", summary->clipped},
      {"slot_size_array", summary->slot_sizes}};
  report.text = absl::StrCat(
      summary->train_samples, " samples to train with (", summary->train_positives, " positive), ",
      summary->test_samples, " to test with (", summary->test_positives, " positive); ",
      summary->clipped, " dense features below -2 count as -2\n",
      "in the model file: \"format\": \"", FormatName(options.format), "\", \"source\": \"",
      summary->train_source, "\", \"eval_source\": \"", summary->test_source,
      "\", \"dense_dim\": 13, \"slot_num\": 26, \"slot_size_array\": [",
      absl::StrJoin(summary->slot_sizes, ", "), "]",
      options.format == DataFormat::kRaw ? ", \"float_label_dense\": true" : "", "\n");
  return report;
}

}  // namespace

void AddCriteoCommand(Command& data) {
  auto flags = std::make_shared<CriteoFlags>();
  CriteoOptions& options = flags->options;
  Command& command = data.Add(
      "criteo", "Prepares Criteo's logs as DLRM does: ids by column, the last day to test.",
      "cistern data criteo day_0 day_1 day_2 --out data/criteo");
  command.Arguments("DAY", &options.days,
                    {"FILE...", "Days of TSV in their order; the last is the test data.",
                     "day_0 day_1 day_2", kRequired});
  command.Flag("--out", &options.out,
               {"DIR", "Folder to make: train, test, ids. Appears whole or not at all.",
                "--out data/criteo", kRequired});
  command.Switch("--overwrite", &options.overwrite,
                 {"", "Replaces a data set that was made before.", "--overwrite"});
  command.Choice("--format", &flags->format,
                 {"norm|raw|parquet", "What to write; raw as floats.", "--format raw"});
  command.Choice("--check", &flags->check,
                 {"sum|none", "Norm: sum gives every record a check byte.", "--check none"});
  command.Choice("--key-bits", &flags->key_bits,
                 {"32|64", "Norm: width of keys.", "--key-bits 64"});
  command.Flag("--samples-per-file", &options.samples_per_file,
               {"INT", "Norm, Parquet: samples of one file.", "--samples-per-file 40960"});
  command.Switch("--no-shuffle", &flags->no_shuffle,
                 {"", "Keeps the training data in the order of the days.", "--no-shuffle"});
  command.Flag("--seed", &options.seed, {"INT", "Of the shuffle.", "--seed 7"});
  command.Flag("--memory-mb", &options.memory_mb,
               {"INT", "Memory for rows while they are shuffled.", "--memory-mb 4096"});
  command.Flag(
      "--multi-hot-size", &flags->multi_hot_size,
      {"INT", "Norm: values that one of a large column becomes; 0: one.", "--multi-hot-size 3"});
  command.Flag("--multi-hot-min-table-size", &flags->multi_hot.min_table_size,
               {"INT", "Columns of fewer ids stay as they are.", "--multi-hot-min-table-size 200"});
  command.Choice(
      "--multi-hot-distribution", &flags->distribution,
      {"uniform|pareto", "How the further values are drawn.", "--multi-hot-distribution pareto"});
  command.Switch(
      "--multi-hot-frequencies", &flags->multi_hot.count_frequencies,
      {"", "Counts values before and after into frequencies.tsv.", "--multi-hot-frequencies"});
  command.Does([flags](Console& console) { return RunCriteo(*flags, console); });
}

}  // namespace cistern
