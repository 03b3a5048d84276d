// Data that never ends as the training data of a run.
#pragma once

#include <string>

#include "app/train/train_run.h"
#include "common/base/status.h"

namespace cistern::app {

struct StreamOptions {
  // A folder, "file://FOLDER", a remote path, or topics of Kafka (cistern.stream.source). Empty:
  // the run trains on the data of its model file.
  std::string source;
  bool once = false;  // the run ends once all data that is there is trained
};

// Makes the stream the data of the run: settings of options->model, in front of those that the user
// gave where these may say otherwise. A single worker continues the run in options->out, if there
// is one and it is not to be replaced; several workers would not all find the folder as it was
// before the first one began.
//
// kInvalidArgument, with options: `once` without a stream, or a source that is not UTF-8.
absl::Status ApplyStream(const StreamOptions& stream, TrainRunOptions* options);

}  // namespace cistern::app
