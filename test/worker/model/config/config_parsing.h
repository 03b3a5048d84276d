// Parses variants of the small model file and returns the errors that they cause.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_replace.h"
#include "test/worker/model/config/config_text.h"
#include "worker/model/config/model_config.h"
#include "worker/model/layer/layer_list.h"

namespace cistern::model {

inline absl::StatusOr<ModelConfig> Parse(const std::vector<std::string>& overrides = {},
                                         const std::string& text = SmallModelText()) {
  return ParseModelConfig(text, "model.json", overrides, LayerGrammars());
}

inline ModelConfig ParseOrDie(const std::vector<std::string>& overrides = {},
                              const std::string& text = SmallModelText()) {
  absl::StatusOr<ModelConfig> config = Parse(overrides, text);
  EXPECT_TRUE(config.ok()) << config.status();
  return config.ok() ? *config : ModelConfig();
}

// The message of the error that `overrides` cause; its code must be kInvalidArgument.
inline std::string ErrorOf(const std::vector<std::string>& overrides,
                           const std::string& text = SmallModelText()) {
  const absl::StatusOr<ModelConfig> config = Parse(overrides, text);
  EXPECT_EQ(config.status().code(), absl::StatusCode::kInvalidArgument) << config.status();
  return std::string(config.status().message());
}

// The small model file with `from` replaced.
inline std::string Replaced(const std::string& from, const std::string& to) {
  EXPECT_THAT(SmallModelText(), ::testing::HasSubstr(from));
  return absl::StrReplaceAll(SmallModelText(), {{from, to}});
}

}  // namespace cistern::model
