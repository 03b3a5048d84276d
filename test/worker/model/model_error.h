// The errors that changes of the small model file cause when the model is built.
#pragma once

#include <string>
#include <vector>

#include "test/worker/model/config/config_parsing.h"
#include "test/worker/model/test_device.h"
#include "worker/model/graph/model.h"

namespace cistern {

// The file parses, and the model is refused with kInvalidArgument and this message.
inline std::string BuildError(const std::vector<std::string>& overrides,
                              const std::string& text = SmallModelText()) {
  const absl::StatusOr<std::unique_ptr<Model>> model =
      Model::Create(ParseOrDie(overrides, text), TestDevice());
  EXPECT_EQ(model.status().code(), absl::StatusCode::kInvalidArgument) << model.status();
  return std::string(model.status().message());
}

// The override that puts another layer in the place of "relu1": bottom fc1 [b, 5], top relu1.
inline std::string InsteadOfRelu(const std::string& type, const std::string& more = "") {
  return R"(layers.relu1={"name":"x","type":")" + type + R"(","bottom":"fc1","top":"relu1")" +
         (more.empty() ? "" : "," + more) + "}";
}

}  // namespace cistern
