// The fixture of tests of app: a model file and its data in a folder.
#pragma once

#include <fstream>
#include <string>

#include "app/train/train_run.h"
#include "test/worker/train/job_fixture.h"

namespace cistern::app {

class RunFixture : public JobFixture {
 protected:
  void SetUp() override {
    JobFixture::SetUp();
    std::ofstream(folder_ + "/model.json") << ModelText();
  }

  TrainRunOptions RunOptions(const std::string& name,
                             const std::vector<std::string>& set = {}) const {
    TrainRunOptions options;
    options.model.config = folder_ + "/model.json";
    options.model.set = set;
    options.model.threads = 2;
    options.out = folder_ + "/" + name;
    return options;
  }

  static absl::StatusOr<TrainRunResult> RunOf(const TrainRunOptions& options,
                                              const TrainRunCalls& calls = {}) {
    CISTERN_ASSIGN_OR_RETURN(model::ModelConfig config, ReadModelConfig(options.model));
    return TrainRun(std::move(config), options, calls);
  }
};

}  // namespace cistern::app
