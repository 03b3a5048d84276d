// Errors from building variants of the small model file.
#pragma once

#include <string>
#include <vector>

#include "test/worker/model/config/config_parsing.h"
#include "test/worker/model/test_device.h"
#include "worker/model/graph/model.h"

namespace cistern::model {

// Returns the message of the kInvalidArgument that building the model returns. The file must parse.
inline std::string BuildError(const std::vector<std::string>& overrides,
                              const std::string& text = SmallModelText()) {
  const absl::StatusOr<std::unique_ptr<Model>> model =
      Model::Create(ParseOrDie(overrides, text), TestDevice());
  EXPECT_EQ(model.status().code(), absl::StatusCode::kInvalidArgument) << model.status();
  return std::string(model.status().message());
}

// Returns an override that replaces "relu1" by another layer with bottom fc1 [b, 5] and top relu1.
inline std::string InsteadOfRelu(const std::string& type, const std::string& more = "") {
  return R"(layers.relu1={"name":"x","type":")" + type + R"(","bottom":"fc1","top":"relu1")" +
         (more.empty() ? "" : "," + more) + "}";
}

}  // namespace cistern::model
