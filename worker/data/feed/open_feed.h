// Opens the source that the text of a stream names.
#pragma once

#include <memory>
#include <string>

#include "common/base/status.h"
#include "worker/data/feed/folder_feed.h"
#include "worker/data/feed/kafka_feed.h"
#include "worker/data/format/data_set.h"

namespace cistern::data {

struct FeedSourceOptions {
  // A folder, "file://FOLDER", a remote path, or topics (kafka_feed.h).
  std::string source;
  // How its payload becomes samples: text by the recipe in this folder, or files of the model's own
  // format if it is empty.
  std::string recipe;
  DataSetOptions data;  // shape, format and rules of the samples; its source is not read
  FileCompletes completes = FileCompletes::kByName;
  double age_seconds = 60;
  uint32_t partitions = 1;       // of a folder
  std::string properties;        // of topics: a file of properties
  bool skips_lost = false;       // of topics
  FeedStatus* status = nullptr;  // outlives the source
};

// kInvalidArgument: a source that is not known or not there, or a recipe that does not fit the
// model.
absl::StatusOr<std::unique_ptr<FeedSource>> OpenFeedSource(const FeedSourceOptions& options);

}  // namespace cistern::data
