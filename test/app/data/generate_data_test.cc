#include "app/data/generate_data.h"

#include <gmock/gmock.h>

#include "app/data/table_model.h"
#include "test/app/data/text_fixture.h"

namespace cistern::app {
namespace {

using testing::ElementsAre;

class GeneratesData : public TextFixture {
 protected:
  GenerateDataOptions Options() const {
    GenerateDataOptions options;
    options.out = In("made");
    options.train_samples = 300;
    options.test_samples = 100;
    return options;
  }
};

TEST_F(GeneratesData, InAShapeOfItsOwn) {
  GenerateDataOptions options = Options();
  options.labels = 2;
  options.dense = 3;
  options.slots = 4;
  options.keys_per_slot = 50;
  const absl::StatusOr<GeneratedData> made = GenerateData(options);
  ASSERT_TRUE(made.ok()) << made.status();
  const nlohmann::ordered_json json = JsonOf(*made);
  EXPECT_EQ(json["format"], "Norm");
  EXPECT_EQ(json["label_dim"], 2);
  EXPECT_EQ(json["dense_dim"], 3);
  EXPECT_EQ(json["slot_num"], 4);
  EXPECT_EQ(json["train_samples"], 300);
  EXPECT_EQ(json["slot_size_array"], (std::vector<int>{50, 50, 50, 50}));
  options.slots = 0;
  options.slot_sizes = {7, 9};
  options.overwrite = true;
  const absl::StatusOr<GeneratedData> sized = GenerateData(options);
  ASSERT_TRUE(sized.ok()) << sized.status();
  EXPECT_EQ(JsonOf(*sized)["slot_size_array"], (std::vector<int>{7, 9}));
}

TEST_F(GeneratesData, InTheShapeOfAModel) {
  InitOptions init;
  init.table = Write("a", 400);
  init.how.model = "lr";
  init.out = In("model");
  const absl::StatusOr<InspectedTable> table = InitModel(init, {});
  ASSERT_TRUE(table.ok()) << table.status();
  GenerateDataOptions options = Options();
  options.model = In("model/model.json");
  const absl::StatusOr<GeneratedData> made = GenerateData(options);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(JsonOf(*made)["dense_dim"], table->plan.dense);
  EXPECT_EQ(JsonOf(*made)["slot_num"], table->plan.slots);
  options.max_nnz = 1000;
  EXPECT_THAT(OptionsOf(GenerateData(options).status()), ElementsAre("max_nnz"));
  options.dense = 2;
  EXPECT_EQ(OptionBesideModel(options), "dense");
  EXPECT_THAT(OptionsOf(GenerateData(options).status()), ElementsAre("dense", "set"));
  options = Options();
  options.model = In("missing.json");
  EXPECT_TRUE(absl::IsInvalidArgument(GenerateData(options).status()));
}

TEST_F(GeneratesData, OnlyWithAShape) {
  GenerateDataOptions options = Options();
  EXPECT_THAT(OptionsOf(GenerateData(options).status()),
              ElementsAre("model", "slots", "slot_sizes"));
  options.set = {"solver.batchsize=1"};
  EXPECT_THAT(OptionsOf(GenerateData(options).status()), ElementsAre("set", "model"));
  options.set = {};
  options.slots = 2;
  options.labels = (1 << 20) + 1;
  EXPECT_THAT(OptionsOf(GenerateData(options).status()), ElementsAre("labels", "dense", "slots"));
  options.labels = 1;
  EXPECT_TRUE(absl::IsCancelled(GenerateData(options, [](uint64_t) { return false; }).status()));
}

}  // namespace
}  // namespace cistern::app
