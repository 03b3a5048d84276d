#include "worker/export/dnn_plugin/paddle_tensor.h"

#include <gtest/gtest.h>

#include "test/support/temp_folder.h"

namespace cistern {
namespace {

// test/golden/paddle_tensor was written by the operator `save` of Paddle 3.3.1 (PyPI): float32
// i / 8 - 3 for i = 0 .. 599, in the shape [2, 300].
TEST(PaddleTensor, BytesAreThosePaddleWrites) {
  std::vector<float> values;
  for (int i = 0; i < 600; ++i) values.push_back(static_cast<float>(i) / 8 - 3);
  EXPECT_TRUE(PaddleTensor({2, 300}, values) ==
              ReadBytes(CISTERN_SOURCE_DIR "/test/golden/paddle_tensor"));
}

}  // namespace
}  // namespace cistern
