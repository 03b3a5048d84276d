// TensorBoard's event files (docs/formats.md).
//
// A process writes a file of its own; TensorBoard reads all files of a folder as one run. A process
// that continues a run begins with a mark that what later steps say in older files does not count.
#pragma once

#include <memory>
#include <string>

#include "app/track/tracker.h"
#include "proto/tensorboard.pb.h"

namespace cistern::app {

// Threads: one at a time.
class TensorboardLog : public Tracker {
 public:
  static absl::StatusOr<std::unique_ptr<Tracker>> Open(FileSystem& files, const TrackedRun& run);

  absl::Status Observe(const Progress& progress) override;
  absl::Status End(RunOutcome outcome) override;

 private:
  explicit TensorboardLog(std::unique_ptr<WritableFile> file) : file_(std::move(file)) {}
  // Sets the time, and appends the event as a record.
  absl::Status Append(tensorboard::Event event);

  const std::unique_ptr<WritableFile> file_;  // unbuffered: TensorBoard reads along
};

// A record: length, its checksum, bytes, their checksum.
std::string TensorboardRecord(absl::string_view bytes);

}  // namespace cistern::app
