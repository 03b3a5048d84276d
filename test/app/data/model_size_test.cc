#include "app/data/model_size.h"

#include <gmock/gmock.h>

namespace cistern::app {
namespace {

// The weights of DCN V2 are `crosses` matrices of width x width; DLRM reads one number for each
// pair of vectors.
TEST(ModelSize, GrowsWithTheSquareOfTheColumns) {
  model::TemplateSizes sizes;
  sizes.vector = 16;
  sizes.crosses = 3;
  sizes.hidden = {256};
  model::TemplateData data;
  data.slot_num = 360;
  EXPECT_TRUE(
      CheckModelSize(model::ModelKind::kDcnV2, sizes, data).ok());  // 3 * 5760^2 = 99.5 million
  data.slot_num = 361;                                              // 3 * 5776^2 = 100.1 million
  const absl::Status large = CheckModelSize(model::ModelKind::kDcnV2, sizes, data);
  EXPECT_TRUE(absl::IsInvalidArgument(large));
  EXPECT_THAT(std::string(large.message()), testing::HasSubstr("has 100 million parameters"));
  EXPECT_THAT(OptionsOf(large), testing::ElementsAre("model", "ignore"));
  EXPECT_TRUE(CheckModelSize(model::ModelKind::kDcn, sizes, data).ok());
  data.slot_num = 883;  // 883 * 884 / 2 * 256 = 99.9 million
  EXPECT_TRUE(CheckModelSize(model::ModelKind::kDlrm, sizes, data).ok());
  data.slot_num = 884;  // 100.1 million
  EXPECT_FALSE(CheckModelSize(model::ModelKind::kDlrm, sizes, data).ok());
}

}  // namespace
}  // namespace cistern::app
