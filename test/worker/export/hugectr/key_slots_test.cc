// The slot of a key: from slot sizes, from the training data, or from the run's initial model file.
#include "worker/export/hugectr/key_slots.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "test/support/temp_folder.h"
#include "test/worker/model/config/config_parsing.h"
#include "worker/data/format/norm_writer.h"
#include "worker/export/hugectr/sparse_rows.h"

namespace cistern {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string MessageOf(KeySlots& slots, Key key) {
  const absl::Status status = slots.Of(key).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << key;
  return std::string(status.message());
}

TEST(KeySlots, FollowFromTheSizesOfAllInputs) {
  const model::ModelConfig config = model::ParseOrDie(
      {"layers.data.format=Raw", "layers.data.check=None",
       R"(layers.data.sparse=[{"top":"w","slot_num":1},{"top":"data1","slot_num":2}])",
       "layers.data.slot_size_array=[7, 30, 20]",
       "layers.deep.type=LocalizedSlotSparseEmbeddingHash"});
  LocalFileSystem files;
  KeySlots slots(config, files, 0);
  EXPECT_EQ(*slots.Of(7), 0u);
  EXPECT_EQ(*slots.Of(36), 0u);
  EXPECT_EQ(*slots.Of(37), 1u);
  EXPECT_EQ(*slots.Of(56), 1u);
  EXPECT_THAT(MessageOf(slots, 6), HasSubstr("key 6 of embedding 'deep' is outside"));
  EXPECT_THAT(MessageOf(slots, 57), HasSubstr("slot_size_array"));
}

class KeySlotsInData : public testing::Test {
 protected:
  KeySlotsInData() : path_(folder_ / "key_slots.norm") {
    data::NormWriterOptions options;
    options.shape.slot_nums = {2};
    options.shape.dense_dim = 3;
    options.check = data::NormCheck::kSum;
    auto writer = data::NormWriter::Create(Disk(), path_, options).value();
    data::SampleBlock block;
    block.Reset(1);
    block.size = 2;
    block.label = {0, 1};
    block.dense.assign(6, 0);
    block.sparse[0].keys = {5, 8, 9, 8};  // slots 1, 1, 0, 0 of two samples
    block.sparse[0].offsets = {0, 0, 2, 4, 4};
    EXPECT_TRUE(writer->Append(block).ok());
    EXPECT_TRUE(writer->Close().ok());
  }
  model::ModelConfig Config(const std::string& source, const std::string& file = "") {
    model::ModelConfig config = model::ParseOrDie(
        {"layers.data.source=" + source, "layers.deep.type=LocalizedSlotSparseEmbeddingHash"});
    if (!file.empty()) config.solver.sparse_model_files = {file};
    return config;
  }

  const TempFolder folder_;
  const std::string path_;
  LocalFileSystem files_;
};

TEST_F(KeySlotsInData, AreTheLowestSlotsOfEachKey) {
  const model::ModelConfig config = Config(path_);
  KeySlots slots(config, files_, 0);
  EXPECT_EQ(*slots.Of(5), 1u);
  EXPECT_EQ(*slots.Of(9), 0u);
  EXPECT_EQ(*slots.Of(8), 0u);
  EXPECT_THAT(MessageOf(slots, 7), HasSubstr("key 7 of embedding 'deep' occurs in no slot of"));
}

TEST_F(KeySlotsInData, CoverKeysOutsideTheSizesOfAHashTable) {
  const std::vector<std::string> sized = {
      "layers.data.source=" + path_, "layers.deep.sparse_embedding_hparam.slot_size_array=[4, 4]",
      "layers.deep.type=LocalizedSlotSparseEmbeddingHash"};
  const model::ModelConfig hash = model::ParseOrDie(sized);
  KeySlots slots(hash, files_, 0);
  EXPECT_EQ(*slots.Of(3), 0u);
  EXPECT_EQ(*slots.Of(5), 1u);
  EXPECT_EQ(*slots.Of(9), 0u);  // from the data
  EXPECT_THAT(MessageOf(slots, 10), HasSubstr("occurs in no slot"));
  const model::ModelConfig one_hot = model::ParseOrDie(
      {sized[0], sized[1], "layers.deep.type=LocalizedSlotSparseEmbeddingOneHot"});
  KeySlots bound(one_hot, files_, 0);
  EXPECT_THAT(MessageOf(bound, 9), HasSubstr("outside the key ranges of slot_size_array"));
}

TEST_F(KeySlotsInData, OfKeysAbsentFromTheDataComeFromTheModelFile) {
  const std::string file = folder_ / "key_slots.model";
  const model::ModelConfig config = Config(path_, file);
  const SparseShape shape = SparseShapeOf(config, 0).value();
  auto writer = SparseWriter::Create(files_, file, HugectrForm::kV2, shape).value();
  const std::vector<float> value(shape.layout.full_floats());
  EXPECT_TRUE(writer->Add(7, 1, value.data()).ok());
  EXPECT_TRUE(writer->Add(5, 0, value.data()).ok());
  EXPECT_TRUE(writer->Close().ok());
  KeySlots slots(config, files_, 0);
  EXPECT_EQ(*slots.Of(7), 1u);
  EXPECT_EQ(*slots.Of(5), 1u);  // from the data
  EXPECT_THAT(MessageOf(slots, 6), HasSubstr("occurs in no slot"));
}

// Training may not have reached the bad record; the records before it count.
TEST_F(KeySlotsInData, StopAtABadRecord) {
  std::filesystem::resize_file(path_, std::filesystem::file_size(path_) - 1);
  const model::ModelConfig config = Config(path_);
  KeySlots slots(config, files_, 0);
  EXPECT_EQ(*slots.Of(5), 1u);
  EXPECT_THAT(MessageOf(slots, 9), AllOf(HasSubstr("occurs in no slot"), HasSubstr("record 1")));
}

TEST_F(KeySlotsInData, NeedTheData) {
  const model::ModelConfig config = Config("/nowhere/train.txt");
  KeySlots slots(config, files_, 0);
  const std::string message = MessageOf(slots, 5);
  EXPECT_THAT(message, HasSubstr("/nowhere/train.txt"));
  EXPECT_THAT(message, HasSubstr("set slot_size_array"));
}

}  // namespace
}  // namespace cistern
