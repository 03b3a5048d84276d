// A serving folder with the small model of the tests, removed with this object.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "test/worker/export/memory_model.h"
#include "test/worker/model/config/config_parsing.h"
#include "worker/export/serving/serving_model.h"

namespace cistern::serve {

class ServingExample {
 public:
  explicit ServingExample(const std::string& name)
      : root_(absl::StrCat(testing::TempDir(), "/", name, "_", getpid(), "_",
                           testing::UnitTest::GetInstance()->current_test_info()->name())),
        config_(model::ParseOrDie()),
        model_(config_) {
    std::filesystem::remove_all(root_);
    for (Key key = 0; key < 50; ++key) {
      model_.Set(0, key, {0.1f * static_cast<float>(key % 7), 0.2f, -0.3f, 0.4f});
    }
    Export();
  }
  ~ServingExample() { std::filesystem::remove_all(root_); }
  ServingExample(const ServingExample&) = delete;
  ServingExample& operator=(const ServingExample&) = delete;

  const std::string& root() const { return root_; }
  MemoryModel& model() { return model_; }
  const model::ModelConfig& config() const { return config_; }
  // Exports the model as a new version.
  void Export() {
    LocalFileSystem files;
    const auto written =
        WriteServingModel(files, config_, {"small.json", model::SmallModelText(), {}}, model_,
                          {root_, RowPrecision::kFloat32, 10});
    ASSERT_TRUE(written.ok()) << written.status();
  }

 private:
  const std::string root_;
  const model::ModelConfig config_;
  MemoryModel model_;
};

}  // namespace cistern::serve
