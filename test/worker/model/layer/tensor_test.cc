#include "worker/model/layer/tensor.h"

#include <gtest/gtest.h>

namespace cistern::model {
namespace {

TEST(TensorShape, GivesItsSizesAndDescription) {
  const TensorShape embedding = {1, {26, 11}};
  EXPECT_EQ(embedding.ToString(), "[b, 26, 11]");
  EXPECT_EQ(embedding.rank(), 3u);
  EXPECT_EQ(embedding.columns(), 286u);
  const TensorShape vectors = {26, {11}};
  EXPECT_EQ(vectors.ToString(), "[26b, 11]");
  EXPECT_EQ(vectors.columns(), 11u);
  EXPECT_EQ(vectors.size(), embedding.size());
  EXPECT_NE(vectors, embedding);
  EXPECT_EQ((TensorShape{1, {0}}.size()), 0u);
}

}  // namespace
}  // namespace cistern::model
