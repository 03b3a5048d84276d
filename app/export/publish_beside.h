// Publishes the commits of a training beside it.
//
//   CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<PublishBeside> publisher,
//                            PublishBeside::Start(options, note, on_published));
//   ... train ...
//   CISTERN_ASSIGN_OR_RETURN(const Published published, publisher->Finish());
#pragma once

#include <atomic>
#include <memory>

#include "app/export/publish.h"
#include "common/base/thread_pool.h"

namespace cistern::app {

// Threads: one at a time; it has a thread of its own, which lowers its own priority.
class PublishBeside {
 public:
  // note, published: called from the thread that publishes, until Finish returns. Errors: those of
  // CheckServingPlace.
  static absl::StatusOr<std::unique_ptr<PublishBeside>> Start(const PublishOptions& options,
                                                              OnNote note, OnPublished published);
  // Without Finish: stops where it is.
  ~PublishBeside();

  // After the training: publishes its last commit and stops. Errors: those of Publish.
  absl::StatusOr<Published> Finish();

 private:
  PublishBeside(const PublishOptions& options, OnNote note, OnPublished published);
  void Run();

  PublishOptions options_;
  const OnPublished on_published_;
  std::atomic<bool> stop_{false}, finishes_{false};
  JobCalls calls_;
  absl::StatusOr<Published> published_ = Published();  // once thread_ is gone
  std::unique_ptr<ThreadPool> thread_;                 // last: joined first
};

}  // namespace cistern::app
