#include "app/data/inspect_data.h"

#include <gmock/gmock.h>

#include "app/data/convert_data.h"
#include "app/data/keyset.h"
#include "app/data/table_model.h"
#include "test/app/data/text_fixture.h"

namespace cistern::app {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ModelsData : public TextFixture {
 protected:
  void SetUp() override {
    ASSERT_TRUE(MakeTableModel(Write("a", 600), {}, In("out"), {}).ok());
    model_ = In("out/model.json");
  }
  std::string model_;
};

TEST_F(ModelsData, IsInspectedInTheShapeOfTheModel) {
  InspectDataOptions options;
  options.model = model_;
  const absl::StatusOr<data::NormSummary> train = InspectData(options);
  ASSERT_TRUE(train.ok()) << train.status();
  options.source = In("out/data/test/file_list.txt");
  const absl::StatusOr<data::NormSummary> test = InspectData(options);
  ASSERT_TRUE(test.ok()) << test.status();
  EXPECT_EQ(train->samples + test->samples, 600u);
  EXPECT_EQ(train->shape.label_dim, 1u);
  options.set = {"layers.0.dense.dense_dim=7"};
  const absl::Status other = InspectData(options).status();
  EXPECT_TRUE(absl::IsInvalidArgument(other));
  EXPECT_THAT(std::string(other.message()), HasSubstr("change the model file to match the data"));
  options = {};
  EXPECT_THAT(OptionsOf(InspectData(options).status()), ElementsAre("model"));
  options.source = In("missing.norm");
  EXPECT_TRUE(absl::IsInvalidArgument(InspectData(options).status()));
}

TEST_F(ModelsData, HasTheKeysOfItsKeyset) {
  ModelKeysetOptions options;
  options.model = model_;
  options.file = In("train.keyset");
  const absl::StatusOr<ModelKeyset> written = KeysetOfModel(options);
  ASSERT_TRUE(written.ok()) << written.status();
  EXPECT_EQ(written->keys, 19u);  // the users
  EXPECT_TRUE(written->wide_keys);
  options.check = true;
  const absl::StatusOr<ModelKeyset> checked = KeysetOfModel(options);
  ASSERT_TRUE(checked.ok()) << checked.status();
  EXPECT_EQ(checked->in_file, 19u);
  EXPECT_EQ(checked->unused, 0u);
  options.input = "nope";
  const absl::Status refused = KeysetOfModel(options).status();
  EXPECT_THAT(OptionsOf(refused), ElementsAre("input"));
  options.input = "";
  options.file = In("missing.keyset");
  EXPECT_TRUE(absl::IsInvalidArgument(KeysetOfModel(options).status()));
  options.check = false;
  options.file = model_;  // would be written over
  EXPECT_TRUE(absl::IsInvalidArgument(KeysetOfModel(options).status()));
}

}  // namespace
}  // namespace cistern::app
