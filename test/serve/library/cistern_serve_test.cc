// The C interface: sizes are respected, and nothing that a caller does wrong ends the program.
// test/integration/serving_export_test.py compares its predictions with those of `cistern predict`.
#include "serve/library/cistern_serve.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "test/serve/predictor/serving_example.h"

namespace cistern::serve {
namespace {

using ::testing::HasSubstr;

class LibraryTest : public testing::Test {
 protected:
  LibraryTest() : example_("cistern_serve_test") {
    model_ = cistern_open(example_.root().c_str(), "threads=1 poll_ms=0", error_, sizeof(error_));
    EXPECT_NE(model_, nullptr) << error_;
  }
  ~LibraryTest() override { cistern_close(model_); }

  int Predict(const cistern_batch* batch, float* out, size_t out_num) {
    return cistern_predict(model_, batch, out, out_num, nullptr, error_, sizeof(error_));
  }

  ServingExample example_;
  char error_[200] = "";
  cistern_model* model_ = nullptr;
  // One sample: two slots of one key each, three dense features.
  const std::vector<uint64_t> keys_ = {1, 2};
  const std::vector<uint32_t> offsets_ = {0, 1, 2};
  const std::vector<float> dense_ = {0.5f, 0.25f, -1};
  const cistern_input input_ = {keys_.data(), 2, offsets_.data(), 3};
  const cistern_batch batch_ = {1, dense_.data(), 3, &input_, 1};
};

TEST_F(LibraryTest, PredictsAndNamesTheCommit) {
  float out[3] = {-1, -1, -1};
  uint64_t commit = 0;
  ASSERT_EQ(cistern_predict(model_, &batch_, out + 1, 1, &commit, error_, sizeof(error_)),
            CISTERN_OK);
  EXPECT_GT(out[1], 0);
  EXPECT_LT(out[1], 1);
  EXPECT_EQ(out[0], -1);
  EXPECT_EQ(out[2], -1);
  EXPECT_EQ(commit, 1u);
}

TEST_F(LibraryTest, NullPointersAreRefused) {
  float out[1];
  EXPECT_EQ(Predict(nullptr, out, 1), CISTERN_BAD_REQUEST);
  EXPECT_EQ(Predict(&batch_, nullptr, 1), CISTERN_BAD_REQUEST);
  cistern_batch batch = batch_;
  batch.dense = nullptr;
  EXPECT_EQ(Predict(&batch, out, 1), CISTERN_BAD_REQUEST);
  batch = batch_;
  batch.inputs = nullptr;
  EXPECT_EQ(Predict(&batch, out, 1), CISTERN_BAD_REQUEST);
  cistern_input input = input_;
  batch = batch_;
  batch.inputs = &input;
  input.keys = nullptr;
  EXPECT_EQ(Predict(&batch, out, 1), CISTERN_BAD_REQUEST);
  input = input_;
  input.offsets = nullptr;
  EXPECT_EQ(Predict(&batch, out, 1), CISTERN_BAD_REQUEST);
  EXPECT_EQ(cistern_predict(nullptr, &batch_, out, 1, nullptr, nullptr, 0), CISTERN_BAD_REQUEST);
  EXPECT_EQ(cistern_follow(nullptr, nullptr, 0), CISTERN_BAD_REQUEST);
  EXPECT_EQ(cistern_open(nullptr, nullptr, error_, sizeof(error_)), nullptr);
  EXPECT_EQ(cistern_describe(nullptr, nullptr, 0), 0u);
  cistern_close(nullptr);
}

TEST_F(LibraryTest, TextsAreCutToTheirSize) {
  const size_t whole = cistern_describe(model_, nullptr, 0);
  std::string all(whole + 1, 'x');
  EXPECT_EQ(cistern_describe(model_, all.data(), all.size()), whole);
  EXPECT_EQ(all.back(), '\0');
  EXPECT_THAT(all, HasSubstr("\"inputs\":[{\"name\":\"data1\",\"slots\":2}]"));
  char few[6] = {'x', 'x', 'x', 'x', 'x', '!'};
  EXPECT_EQ(cistern_describe(model_, few, 5), whole);
  EXPECT_EQ(std::string(few), all.substr(0, 4));
  EXPECT_EQ(few[5], '!');
  float out[1];
  char error[4] = {'x', 'x', 'x', '!'};
  EXPECT_EQ(cistern_predict(model_, &batch_, out, 7, nullptr, error, 3), CISTERN_BAD_REQUEST);
  EXPECT_EQ(std::string(error), "ro");
  EXPECT_EQ(error[3], '!');
}

TEST_F(LibraryTest, FollowsToAnotherVersion) {
  EXPECT_EQ(cistern_follow(model_, error_, sizeof(error_)), 0);
  example_.Export();
  EXPECT_EQ(cistern_follow(model_, error_, sizeof(error_)), 1);
  std::filesystem::remove(example_.root() + "/HEAD");
  EXPECT_EQ(cistern_follow(model_, error_, sizeof(error_)), CISTERN_NOT_FOUND);
  float out[1];
  EXPECT_EQ(Predict(&batch_, out, 1), CISTERN_OK);
}

TEST_F(LibraryTest, CountsRequests) {
  float out[1];
  ASSERT_EQ(Predict(&batch_, out, 1), CISTERN_OK);
  ASSERT_EQ(Predict(&batch_, out, 2), CISTERN_BAD_REQUEST);
  char json[500];
  cistern_stats(model_, json, sizeof(json));
  EXPECT_THAT(std::string(json), HasSubstr("\"requests\":1,\"refused\":1,\"samples\":1"));
}

}  // namespace
}  // namespace cistern::serve
