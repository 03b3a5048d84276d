#include "worker/train/data_look.h"

#include <gmock/gmock.h>

#include <functional>

#include "test/worker/train/job_fixture.h"
#include "worker/model/layer/layer_list.h"

namespace cistern {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// One sample: the keys of its four slots, one number, and the label.
struct Sample {
  std::vector<Key> keys;
  float number = 0, label = 0;
};

class LookAt : public testing::Test {
 protected:
  std::vector<std::string> WarningsOf(const std::function<void(Sample*, std::mt19937&)>& change,
                                      const ColumnNames& names = {}) {
    Write("/train.norm", 1, change);
    Write("/test.norm", 2, change);
    const auto look = LookAtData(Config(), names);
    EXPECT_TRUE(look.ok()) << look.status();
    if (!look.ok()) return {};
    EXPECT_EQ(look->samples, 2000u);
    return look->warnings;
  }

 private:
  void Write(const std::string& name, unsigned seed,
             const std::function<void(Sample*, std::mt19937&)>& change) {
    data::NormWriterOptions options;
    options.shape.slot_nums = {kSlots};
    options.shape.max_keys = {kSlots};
    options.shape.dense_dim = 1;
    auto writer = data::NormWriter::Create(Disk(), folder_.path() + name, options);
    ASSERT_TRUE(writer.ok()) << writer.status();
    std::mt19937 random(seed);
    data::SampleBlock block;
    block.Reset(1);
    for (size_t i = 0; i < 2000; ++i) {
      Sample sample;
      for (uint32_t slot = 0; slot < kSlots; ++slot) {
        sample.keys.push_back(slot * 100 + random() % 50);
      }
      sample.number = static_cast<float>(random() % 1000);
      sample.label = random() % 4 == 0 ? 1.0f : 0.0f;
      change(&sample, random);
      for (const Key key : sample.keys) {
        block.sparse[0].keys.push_back(key);
        block.sparse[0].offsets.push_back(static_cast<uint32_t>(block.sparse[0].keys.size()));
      }
      block.dense.push_back(sample.number);
      block.label.push_back(sample.label);
      ++block.size;
    }
    ASSERT_TRUE((*writer)->Append(block).ok());
    ASSERT_TRUE((*writer)->Close().ok());
  }
  model::ModelConfig Config() {
    const auto config = model::ParseModelConfig(
        absl::StrCat(R"({
      "solver": {"lr_policy": "fixed", "num_epochs": 1, "batchsize": 256},
      "optimizer": {"type": "Adam", "update_type": "Local",
                    "adam_hparam": {"learning_rate": 0.01}},
      "layers": [
        {"name": "data", "type": "Data", "source": ")",
                     folder_.path(), R"(/train.norm", "eval_source": ")", folder_.path(),
                     R"(/test.norm", "check": "None",
         "label": {"top": "label", "label_dim": 1}, "dense": {"top": "dense", "dense_dim": 1},
         "sparse": [{"top": "slots", "type": "DistributedSlot",
                     "max_feature_num_per_sample": 4, "slot_num": 4}]},
        {"type": "DistributedSlotSparseEmbeddingHash", "bottom": "slots", "top": "embedding",
         "sparse_embedding_hparam": {"embedding_vec_size": 8, "combiner": "sum"}},
        {"name": "flat", "type": "Reshape", "bottom": "embedding", "top": "flat",
         "leading_dim": 32},
        {"name": "both", "type": "Concat", "bottom": ["flat", "dense"], "top": "both"},
        {"name": "fc", "type": "InnerProduct", "bottom": "both", "top": "fc",
         "fc_param": {"num_output": 1}},
        {"name": "loss", "type": "BinaryCrossEntropyLoss", "bottom": ["fc", "label"],
         "top": "loss"}]})"),
        "model.json", {}, model::LayerGrammars());
    EXPECT_TRUE(config.ok()) << config.status();
    return *config;
  }

  const TempFolder folder_;
};

TEST_F(LookAt, OrdinaryDataHasNoWarnings) {
  EXPECT_THAT(WarningsOf([](Sample*, std::mt19937&) {}), IsEmpty());
}

TEST_F(LookAt, NamesASlotWithOneValue) {
  EXPECT_THAT(WarningsOf([](Sample* sample, std::mt19937&) { sample->keys[2] = 250; }),
              ElementsAre(HasSubstr("slot slots[2] has one value")));
}

TEST_F(LookAt, NamesColumnsAsTheRecipeDoes) {
  const ColumnNames names = {{"user", "item", "city", "hour"}, {"price"}};
  EXPECT_THAT(WarningsOf(
                  [](Sample* sample, std::mt19937&) {
                    sample->keys[2] = 250;
                    sample->number = 3;
                  },
                  names),
              ElementsAre(HasSubstr("slot city has one value"),
                          HasSubstr("dense column price has one value")));
}

TEST_F(LookAt, ASlotThatVariesOnlyBetweenTheFilesIsFine) {
  int written = 0;  // a day, for example: one for training, the next for evaluation
  EXPECT_THAT(WarningsOf([&](Sample* sample, std::mt19937&) {
                sample->keys[2] = written++ < 2000 ? 250 : 251;
              }),
              IsEmpty());
}

TEST_F(LookAt, NamesASlotThatDecidesTheLabel) {
  EXPECT_THAT(WarningsOf([](Sample* sample, std::mt19937&) {
                sample->label = sample->keys[1] % 2 == 0 ? 1.0f : 0.0f;
              }),
              ElementsAre(HasSubstr("slot slots[1] decides the label")));
}

TEST_F(LookAt, ASlotWhoseKeysAreAllRareDecidesNothing) {
  uint64_t next = 1000;  // an id of the sample: it "decides" every label
  EXPECT_THAT(WarningsOf([&](Sample* sample, std::mt19937&) { sample->keys[1] = next++; }),
              IsEmpty());
}

TEST_F(LookAt, ASlotThatExplainsMuchIsFine) {
  EXPECT_THAT(WarningsOf([](Sample* sample, std::mt19937& random) {
                const bool even = sample->keys[1] % 2 == 0;
                sample->label = even == (random() % 10 > 0) ? 1.0f : 0.0f;
              }),
              IsEmpty());
}

TEST_F(LookAt, NamesADenseColumnThatDecidesTheLabel) {
  EXPECT_THAT(WarningsOf([](Sample* sample, std::mt19937&) {
                sample->number += sample->label > 0 ? 5000.0f : 0.0f;
              }),
              ElementsAre(HasSubstr("dense column 0 decides the label")));
}

TEST_F(LookAt, NamesADenseColumnWithOneValue) {
  EXPECT_THAT(WarningsOf([](Sample* sample, std::mt19937&) { sample->number = 3; }),
              ElementsAre(HasSubstr("dense column 0 has one value")));
}

TEST_F(LookAt, NamesLabelsOtherThanZeroAndOne) {
  EXPECT_THAT(WarningsOf([](Sample* sample, std::mt19937& random) {
                if (random() % 100 == 0) sample->label = 0.5f;
              }),
              ElementsAre(HasSubstr("neither 0 nor 1, for example 0.5")));
}

}  // namespace
}  // namespace cistern
