#include "cli/command/train_publish.h"

#include "cli/command/publish_command.h"
#include "cli/command/shared_flags.h"

namespace cistern {

absl::StatusOr<std::unique_ptr<PublishBeside>> PublishBeside::Start(const TrainFlags& flags,
                                                                    const app::WorkerRank& worker,
                                                                    Console& console) {
  if (flags.publish.empty() || worker.rank > 0) return std::unique_ptr<PublishBeside>();
  const bool keeps = flags.durability == "commit" && !flags.no_save_model;
  if (!flags.model.fleet.servers.empty() || !keeps) {
    return WithFix(
        absl::InvalidArgumentError(
            "--publish follows the commits that this training keeps in --out"),
        keeps ? "for servers elsewhere, start cistern publish with --follow, their data_dir"
              : "leave out --durability none and --no-save-model");
  }
  std::unique_ptr<PublishBeside> publisher(new PublishBeside(flags, console));
  CISTERN_RETURN_IF_ERROR(app::CheckServingPlace(publisher->options_.version));
  publisher->thread_->Run([raw = publisher.get()] { raw->Run(); });
  return publisher;
}

PublishBeside::PublishBeside(const TrainFlags& flags, Console& console)
    : console_(console), thread_(std::make_unique<ThreadPool>(1)) {
  options_.model.config = flags.out;
  options_.state = flags.out;
  options_.version.out = flags.publish;
}

PublishBeside::~PublishBeside() {
  stop_ = true;
}

app::JobCalls PublishBeside::Calls() {
  app::JobCalls calls;
  calls.note = NotesOn(console_);
  calls.stop = &stop_;
  return calls;
}

void PublishBeside::Run() {
  published_ =
      app::Publish(options_, Calls(), [this](const ServingWritten& written, double seconds) {
        console_.Say(PublishedText(written, seconds));
      });
}

absl::Status PublishBeside::Finish(Report* report) {
  stop_ = true;
  thread_.reset();  // waits
  uint64_t versions = published_.ok() ? published_->versions : 0;
  if (published_.ok()) {
    stop_ = false;
    options_.once = true;
    published_ = app::Publish(options_, Calls(), nullptr);
  }
  CISTERN_RETURN_IF_ERROR(AddContext(published_.status(), "publishing to " + options_.version.out));
  versions += published_->versions;
  report->json["published"] = {{"commit", CommitJson(*published_)}, {"versions", versions}};
  absl::StrAppend(&report->text, "published            ", CommitText(*published_), " to ",
                  options_.version.out, "\n");
  return absl::OkStatus();
}

}  // namespace cistern
