#include "worker/export/onnx/onnx_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

namespace cistern {
namespace {

using ::testing::ElementsAre;

TEST(OnnxGraph, NamesOfTensorsDiffer) {
  OnnxGraph graph("g");
  EXPECT_EQ(graph.NewName("fc"), "fc");
  EXPECT_EQ(graph.NewName("fc_2"), "fc_2");
  EXPECT_EQ(graph.NewName("fc"), "fc_3");
  const int64_t one = 1;
  EXPECT_EQ(graph.AddInts("fc", {&one, 1}), "fc_4");
}

TEST(OnnxGraph, NamesOfNodesDiffer) {
  OnnxGraph graph("g");
  graph.AddNode("relu", "Relu", {"a"}, {"b"});
  graph.AddNode("relu", "Relu", {"b"}, {"c"});
  EXPECT_EQ(graph.graph().node(0).name(), "relu");
  EXPECT_EQ(graph.graph().node(1).name(), "relu_2");
  EXPECT_THAT(graph.graph().node(1).input(), ElementsAre("b"));
  EXPECT_THAT(graph.graph().node(1).output(), ElementsAre("c"));
}

TEST(OnnxGraph, TheFirstDimensionOfInputsIsTheBatch) {
  OnnxGraph graph("g");
  const size_t dims[] = {26, 16};
  graph.AddInput("x", dims);
  const onnx::Type::TensorType& type = graph.graph().input(0).type().tensor_type();
  EXPECT_EQ(type.elem_type(), 1);  // FLOAT
  ASSERT_EQ(type.shape().dim_size(), 3);
  EXPECT_EQ(type.shape().dim(0).dim_param(), "batch");
  EXPECT_EQ(type.shape().dim(1).dim_value(), 26);
  EXPECT_EQ(type.shape().dim(2).dim_value(), 16);
}

TEST(OnnxGraph, ConstantsHoldLittleEndianCells) {
  OnnxGraph graph("g");
  const size_t dims[] = {1, 2};
  const float cells[] = {1.0f, -2.0f};
  graph.AddFloats("w", dims, cells);
  const onnx::Tensor& tensor = graph.graph().initializer(0);
  EXPECT_EQ(tensor.raw_data(), std::string("\x00\x00\x80\x3f\x00\x00\x00\xc0", 8));
  EXPECT_THAT(tensor.dims(), ElementsAre(1, 2));
}

// Field numbers and types of the ONNX specification, not of our proto file: a reader written for
// proto2 checks which field of an attribute is set.
TEST(OnnxGraph, AttributesOfZeroAreOnTheWire) {
  const onnx::Attribute zero = IntAttribute("axis", 0);
  EXPECT_EQ(zero.SerializeAsString(), std::string("\x0a\x04"
                                                  "axis"
                                                  "\x18\x00"
                                                  "\xa0\x01\x02",
                                                  11));
  const onnx::Attribute none = FloatAttribute("f", 0.0f);
  EXPECT_EQ(none.SerializeAsString(), std::string("\x0a\x01"
                                                  "f"
                                                  "\x15\x00\x00\x00\x00"
                                                  "\xa0\x01\x01",
                                                  11));
}

}  // namespace
}  // namespace cistern
