#include "serve/server/tensor.h"

#include <gtest/gtest.h>

namespace cistern::serve {
namespace {

TEST(InferTensor, CountsItsElements) {
  EXPECT_EQ(*ElementCount("x", {}), 1u);
  EXPECT_EQ(*ElementCount("x", {2, 3, 4}), 24u);
  EXPECT_EQ(*ElementCount("x", {int64_t{1} << 62, int64_t{1} << 62, 0}), 0u);
  EXPECT_FALSE(ElementCount("x", {int64_t{1} << 62, 8}).ok());
  EXPECT_FALSE(ElementCount("x", {0, -1}).ok());
}

TEST(InferTensor, KnowsTheSizesOfTheProtocolsTypes) {
  // The table of data types in the protocol's specification.
  for (const char* type : {"BOOL", "UINT8", "INT8"}) EXPECT_EQ(ElementBytes(type), 1u) << type;
  for (const char* type : {"UINT16", "INT16", "FP16"}) EXPECT_EQ(ElementBytes(type), 2u) << type;
  for (const char* type : {"UINT32", "INT32", "FP32"}) EXPECT_EQ(ElementBytes(type), 4u) << type;
  for (const char* type : {"UINT64", "INT64", "FP64"}) EXPECT_EQ(ElementBytes(type), 8u) << type;
  for (const char* type : {"BYTES", "", "fp32"}) EXPECT_EQ(ElementBytes(type), 0u) << type;
}

TEST(InferTensor, IsNamedSafely) {
  EXPECT_EQ(Quoted("a\n\x01"), "'a\\n\\x01'");
  EXPECT_LT(Quoted(std::string(1 << 20, 'x')).size(), 100u);
  EXPECT_EQ(ShapeText({1, -1}), "[1,-1]");
  EXPECT_EQ(ShapeText(std::vector<int64_t>(1000, 1)), "[1,1,1,1,1,1,1,1,...]");
}

}  // namespace
}  // namespace cistern::serve
