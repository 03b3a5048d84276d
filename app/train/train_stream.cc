#include "app/train/train_stream.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"

namespace cistern::app {

absl::Status ApplyStream(const StreamOptions& stream, TrainRunOptions* options) {
  if (stream.source.empty()) {
    if (!stream.once) return absl::OkStatus();
    return WithFix(
        WithOptions(absl::InvalidArgumentError(
                        "the run is to end once its stream is empty, but it has none"),
                    {"once", "stream"}),
        "name a stream, such as the folder clicks/, or let the run end as its model says");
  }
  CISTERN_RETURN_IF_ERROR(WithOptions(CheckNameForJson("the stream", stream.source), {"stream"}));
  std::vector<std::string>& set = options->model.set;
  // Before the user's settings, and after the model file of an earlier run, which may say "empty".
  set.insert(set.begin(), absl::StrCat("cistern.stream.until=", stream.once ? "empty" : "stopped"));
  set.push_back(absl::StrCat("cistern.stream.source=", nlohmann::json(stream.source).dump()));
  options->more = true;
  if (options->worker.world_size == 1 && !options->overwrite && IsRunFolder(options->out)) {
    options->resume = true;
  }
  return absl::OkStatus();
}

}  // namespace cistern::app
