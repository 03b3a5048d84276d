#include "cli/command/publish_command.h"

#include <memory>

#include "app/export/publish.h"
#include "app/train/train_json.h"
#include "cli/command/shared_flags.h"
#include "cli/command/version_flags.h"
#include "cli/terminal/exit_code.h"
#include "cli/terminal/interrupt.h"
#include "common/base/amount_text.h"

namespace cistern::cli {
namespace {

struct PublishFlags {
  app::PublishOptions options;
  std::string precision = "float32";
};

absl::StatusOr<Report> RunPublish(const app::PublishOptions& options, Console& console) {
  app::JobCalls calls;
  calls.note = NotesOn(console);
  calls.stop = CatchInterrupts();
  std::string last;
  uint64_t versions = 0;
  CISTERN_ASSIGN_OR_RETURN(
      const app::Published published,
      app::Publish(options, calls, [&](const ServingWritten& written, double seconds) {
        last = PublishedText(written, seconds);
        if (!options.once) console.Say(last);
        const std::string note = NameNote(written, options.version.out);
        if (++versions == 1 && !note.empty()) console.Say(note);
      }));
  Report report;
  report.json = app::JsonOf(published);
  if (options.once && !published.commit) {
    return WithFix(absl::FailedPreconditionError(
                       absl::StrCat(options.state.empty() ? "the fleet" : options.state,
                                    " has no commit that could be published yet")),
                   "publish after the first commit, or leave out --once: then it is awaited");
  }
  report.text = !last.empty() && options.once
                    ? last + "\n"
                    : absl::StrCat("published ", published.versions,
                                   published.versions == 1 ? " version; " : " versions; ",
                                   options.version.out, " serves ", ServedText(published), "\n");
  return report;
}

}  // namespace

std::string ServedText(const app::Published& published) {
  return published.commit ? absl::StrCat("commit ", *published.commit) : "no version";
}

std::string PublishedText(const ServingWritten& written, double seconds) {
  return absl::StrCat("published commit ", written.version.commit, ": ", written.rows, " rows, ",
                      BytesText(written.bytes), " in ", DurationText(seconds));
}

void AddPublishCommand(Command& root) {
  auto flags = std::make_shared<PublishFlags>();
  Command& command =
      root.Add("publish", "Keeps a serving folder at the newest commit of a training.",
               "cistern publish deepfm.json --follow fleet/data --out serving");
  AddModelFileFlags(command, &flags->options.model);
  command.Flag("--follow", &flags->options.state,
               {"DIR",
                "The data_dir of servers, or the --out folder of a training run with --durability "
                "commit.",
                "--follow fleet/data"});
  command.Flag("--servers", &flags->options.model.fleet.servers,
               {"HOST:PORT,...",
                "Instead of --follow, where this machine does not see the data_dir: all servers of "
                "the fleet, which send the files of their commits.",
                "--servers 127.0.0.1:7700,127.0.0.1:7701"});
  AddConnectionFlags(command, &flags->options.model.fleet);
  AddVersionFlags(command, &flags->options.version, &flags->precision);
  command.Flag("--base-share", &flags->options.base_share,
               {"SHARE",
                "A table is written as a whole, beside further versions, once this share of its "
                "rows has changed since it was.",
                "--base-share 0.5"});
  command.Switch("--idle", &flags->options.idle,
                 {"",
                  "Works only where a processor has nothing else to do: for a machine that also "
                  "answers requests. Beside a training, which leaves none idle, versions are late.",
                  "--idle"});
  command.Flag("--poll-ms", &flags->options.poll_ms,
               {"MS", "How often to look for a new commit.", "--poll-ms 1000"});
  command.Switch(
      "--once", &flags->options.once,
      {"", "Publishes the newest commit and ends; by default runs until Ctrl-C.", "--once"});
  command.Flag("--threads", &flags->options.model.threads,
               ThreadsText("Number of threads that read"));
  command.Does([flags](Console& console) -> absl::StatusOr<Report> {
    if (flags->options.state.empty() == flags->options.model.fleet.servers.empty()) {
      return WithFix(
          absl::InvalidArgumentError("publish requires exactly one of --follow and --servers"),
          "name the servers' data_dir if this machine sees it: --follow fleet/data; else the "
          "servers");
    }
    flags->options.version.precision = *PrecisionOf(flags->precision);
    return RunPublish(flags->options, console);
  });
}

}  // namespace cistern::cli
