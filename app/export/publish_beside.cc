#include "app/export/publish_beside.h"

#include <utility>

namespace cistern::app {

absl::StatusOr<std::unique_ptr<PublishBeside>> PublishBeside::Start(const PublishOptions& options,
                                                                    OnNote note,
                                                                    OnPublished published) {
  CISTERN_RETURN_IF_ERROR(CheckServingPlace(options.version));
  std::unique_ptr<PublishBeside> publisher(
      new PublishBeside(options, std::move(note), std::move(published)));
  publisher->thread_->Run([raw = publisher.get()] { raw->Run(); });
  return publisher;
}

PublishBeside::PublishBeside(const PublishOptions& options, OnNote note, OnPublished published)
    : options_(options),
      on_published_(std::move(published)),
      thread_(std::make_unique<ThreadPool>(1)) {
  calls_.note = std::move(note);
  calls_.stop = &stop_;
}

PublishBeside::~PublishBeside() {
  stop_ = true;
}

void PublishBeside::Run() {
  published_ = Publish(options_, calls_, on_published_);
  if (!published_.ok() || !finishes_) return;
  const uint64_t versions = published_->versions;
  calls_.stop = nullptr;
  options_.once = true;
  published_ = Publish(options_, calls_, on_published_);
  if (published_.ok()) published_->versions += versions;
}

absl::StatusOr<Published> PublishBeside::Finish() {
  finishes_ = true;
  stop_ = true;
  thread_.reset();  // waits
  if (published_.ok()) return published_;
  return AddContext(published_.status(), "publishing to " + options_.version.out);
}

}  // namespace cistern::app
