#include <memory>

#include "absl/time/clock.h"
#include "cli/command/export_commands.h"
#include "cli/session/export_source.h"
#include "cli/terminal/progress.h"
#include "worker/export/serving/serving_model.h"

namespace cistern {
namespace {

struct ServingFlags {
  ExportFlags source;
  std::string out;
  std::string precision = "float32";
  uint64_t keep = 2;
};

constexpr uint64_t kMostModelBytes = uint64_t{64} << 20;

absl::StatusOr<Report> RunExportServing(const ServingFlags& flags) {
  LocalFileSystem files;
  CISTERN_ASSIGN_OR_RETURN(const ExportSource source, OpenExportSource(flags.source));
  CISTERN_ASSIGN_OR_RETURN(const std::string text,
                           ReadWhole(files, flags.source.model.config, kMostModelBytes));
  const absl::Time start = absl::Now();
  const ServingOptions options = {flags.out, *PrecisionOf(flags.precision), flags.keep};
  const auto written = WriteServingModel(files, source.config,
                                         {flags.source.model.config, text, flags.source.model.set},
                                         *source.model, options);
  if (!written.ok()) return WithFleetFix(written.status(), flags.source.model.fleet);
  const ServingVersion& version = written->version;
  const double seconds = absl::ToDoubleSeconds(absl::Now() - start);
  Report report;
  report.json["version"] = version.folder;
  report.json["commit"] = version.commit;
  report.json["pass"] = version.pass;
  report.json["precision"] = flags.precision;
  report.json["rows"] = written->rows;
  report.json["bytes"] = written->bytes;
  report.json["seconds"] = seconds;
  report.text = absl::StrCat(flags.out, "/", version.folder, "\nexported ", written->rows,
                             " rows as ", flags.precision, ", ", BytesText(written->bytes), " in ",
                             DurationText(seconds), "; ",
                             version.commit > 0 ? absl::StrCat("commit ", version.commit)
                                                : absl::StrCat("pass ", version.pass),
                             "\n");
  return report;
}

}  // namespace

void AddExportServing(Command& all) {
  auto flags = std::make_shared<ServingFlags>();
  Command& command =
      all.Add("serving", "Writes a version of the model to a serving folder, for cistern serve.",
              "cistern export serving deepfm.json --model runs/deepfm --out serving");
  AddExportFlags(command, &flags->source);
  command.Flag("--out", &flags->out,
               {"DIR", "The serving folder; its HEAD names the new version when that is complete.",
                "--out serving", kRequired});
  command.Choice("--precision", &flags->precision,
                 {"float32|float16|bfloat16|int8",
                  "How rows are stored; int8: row-wise, with a float16 scale and offset.",
                  "--precision int8"});
  command.Flag("--keep", &flags->keep,
               {"INT", "The number of versions to keep, at least 1.", "--keep 5"});
  command.Does([flags](Console&) { return RunExportServing(*flags); });
}

}  // namespace cistern
