#include "app/plan/description.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "test/worker/model/config/config_parsing.h"

namespace cistern::app {
namespace {

TEST(ModelDescription, HoldsTheGraphWithoutData) {
  const absl::StatusOr<ModelDescription> described = DescribeModel(model::ParseOrDie());
  ASSERT_TRUE(described.ok()) << described.status();
  const nlohmann::ordered_json json = JsonOf(*described);
  EXPECT_EQ(json["layers"].size(), 7u);
  EXPECT_EQ(json["layers"][3]["shape"][0], "[b, 5]");
  EXPECT_EQ(json["dense_parameters"], 11 * 5 + 5 + 5 + 1);
  EXPECT_EQ(json["tables"][0]["server_bytes_per_row"], 8 + 48 + 10);
  EXPECT_EQ(json["activations"], "float32");
}

}  // namespace
}  // namespace cistern::app
