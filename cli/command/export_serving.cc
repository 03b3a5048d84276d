#include "app/export/export_serving.h"

#include <cmath>
#include <limits>
#include <memory>

#include "absl/strings/str_format.h"
#include "cli/command/export_commands.h"
#include "cli/command/job_console.h"
#include "cli/command/shared_flags.h"
#include "cli/command/version_flags.h"
#include "common/base/amount_text.h"

namespace cistern::cli {
namespace {

struct ServingFlags {
  app::ServingExport options;
  std::string precision = "float32";
  double max_auc_loss = std::numeric_limits<double>::quiet_NaN();  // not given
};

std::string TextOf(const app::ServingExported& exported, const std::string& out) {
  const auto& version = exported.written.version;
  std::string text =
      absl::StrCat(out, "/", version.folder, "\nexported ", exported.written.rows, " rows as ",
                   NameOf(version.precision), ", ", BytesText(exported.written.bytes), " in ",
                   DurationText(exported.seconds), "; ",
                   version.commit > 0 ? absl::StrCat("commit ", version.commit)
                                      : absl::StrCat("pass ", version.pass),
                   "; model ", version.name, "\n");
  if (!exported.cost) return text;
  const app::PrecisionCost& cost = *exported.cost;
  absl::StrAppendFormat(&text,
                        "check data: AUC %.6f (float32: %.6f), log loss %.6f (%.6f), largest "
                        "difference of a prediction %.3g\n",
                        cost.stored.auc, cost.exact.auc, cost.stored.logloss, cost.exact.logloss,
                        cost.largest_difference);
  return text;
}

}  // namespace

void AddExportServing(Command& all) {
  auto flags = std::make_shared<ServingFlags>();
  Command& command =
      all.Add("serving", "Writes a version of the model to a serving folder, for cistern serve.",
              "cistern export serving deepfm.json --model runs/deepfm --out serving");
  AddExportFlags(command, &flags->options.source);
  AddVersionFlags(command, &flags->options.version, &flags->precision);
  command.List("--check-data", &flags->options.check_data, true,
               {"FILE,...",
                "Data with labels, on which the version is compared with one in float32 before it "
                "is served.",
                "--check-data test.txt"});
  command.Flag("--max-auc-loss", &flags->max_auc_loss,
               {"NUMBER", "With --check-data: a version that loses more AUC is not served.",
                "--max-auc-loss 0.0001"});
  command.Does([flags](Console& console) -> absl::StatusOr<Report> {
    app::ServingExport& options = flags->options;
    options.version.precision = *PrecisionOf(flags->precision);
    if (!std::isnan(flags->max_auc_loss)) options.max_auc_loss = flags->max_auc_loss;
    CISTERN_ASSIGN_OR_RETURN(const app::ServingExported exported,
                             app::ExportServing(options, JobConsole(console).calls()));
    const std::string note = NameNote(exported.written, options.version.out);
    if (!note.empty()) console.Say(note);
    return Report{app::JsonOf(exported), TextOf(exported, options.version.out), absl::OkStatus()};
  });
}

}  // namespace cistern::cli
