// Whole exports: both files, failing disks, and a state that changes meanwhile.
#include "worker/export/onnx/onnx_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <xxhash.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "proto/onnx.pb.h"
#include "test/support/fault_file_system.h"
#include "test/support/memory_file_system.h"
#include "test/worker/export/onnx/stored_model.h"

namespace cistern {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const OnnxPlace kPlace = {"out/a.onnx"};

std::string Content(FileSystem& files, const std::string& path) {
  return ReadWhole(files, path, 1 << 20).value_or("");
}

class OnnxModel : public testing::Test {
 protected:
  OnnxModel() : config_(model::ParseOrDie()), model_(config_) {}

  const model::ModelConfig config_;
  StoredModel model_;
};

TEST_F(OnnxModel, WritesTheNetworkAndItsDescription) {
  MemoryFileSystem files;
  const OnnxWritten written = WriteOnnxModel(files, config_, model_, kPlace).value();
  EXPECT_THAT(written.paths, ElementsAre("out/a.onnx", "out/a.onnx.json"));
  EXPECT_EQ(written.layers, 5u);
  EXPECT_EQ(written.parameters, 11u * 5 + 5 + 5 + 1);
  EXPECT_THAT(written.inputs, ElementsAre("dense", "emb"));
  EXPECT_THAT(written.outputs, ElementsAre("probability"));
  const std::string bytes = Content(files, "out/a.onnx");
  EXPECT_EQ(written.bytes, bytes.size());
  EXPECT_EQ(written.xxh3, XXH3_64bits(bytes.data(), bytes.size()));
  onnx::Model read;
  ASSERT_TRUE(read.ParseFromString(bytes));
  EXPECT_EQ(read.graph().node_size(), 6);
  EXPECT_EQ(read.metadata_props_size(), 6);
  const auto json = nlohmann::json::parse(Content(files, "out/a.onnx.json"));
  EXPECT_EQ(json["onnx"], "a.onnx");
  EXPECT_EQ(json["bytes"], bytes.size());
}

TEST_F(OnnxModel, TheSameStateGivesTheSameBytes) {
  MemoryFileSystem one, two;
  ASSERT_TRUE(WriteOnnxModel(one, config_, model_, kPlace).ok());
  ASSERT_TRUE(WriteOnnxModel(two, config_, model_, kPlace).ok());
  EXPECT_EQ(Content(one, "out/a.onnx"), Content(two, "out/a.onnx"));
}

TEST_F(OnnxModel, AStateThatChangedMeanwhileLeavesTheOldFiles) {
  MemoryFileSystem files;
  ASSERT_TRUE(WriteOnnxModel(files, config_, model_, kPlace).ok());
  const std::string before = Content(files, "out/a.onnx");
  StoredModel changed(config_);
  changed.SetParameter(0, 9.0f);
  changed.recheck = absl::AbortedError("changed");
  EXPECT_TRUE(absl::IsAborted(WriteOnnxModel(files, config_, changed, kPlace).status()));
  EXPECT_EQ(Content(files, "out/a.onnx"), before);
  EXPECT_THAT(files.List("out").value(), ElementsAre("a.onnx", "a.onnx.json"));
}

TEST_F(OnnxModel, AWeightThatIsNotFiniteWritesNothing) {
  MemoryFileSystem files;
  model_.SetParameter(60, NAN);
  const auto written = WriteOnnxModel(files, config_, model_, kPlace);
  EXPECT_THAT(std::string(written.status().message()), HasSubstr("layer 'fc2'"));
  EXPECT_FALSE(files.Exists("out/a.onnx").value());
}

TEST_F(OnnxModel, AnyFailedCallLeavesAWholeFileAndTheNextAttemptSucceeds) {
  StoredModel changed(config_);
  changed.SetParameter(0, 9.0f);
  MemoryFileSystem old_disk, new_disk;
  ASSERT_TRUE(WriteOnnxModel(old_disk, config_, model_, kPlace).ok());
  ASSERT_TRUE(WriteOnnxModel(new_disk, config_, changed, kPlace).ok());
  const std::string before = Content(old_disk, "out/a.onnx"),
                    after = Content(new_disk, "out/a.onnx");
  ASSERT_NE(before, after);
  uint64_t n = 1;
  for (;; ++n) {
    const auto memory = old_disk.Crash(old_disk.operation_num(), MemoryFileSystem::Loss::kKill, 0);
    FaultFileSystem files(memory.get());
    files.FailCall(n, Fault::kNoSpace);
    const auto written = WriteOnnxModel(files, config_, changed, kPlace);
    if (files.hits().empty()) break;
    const std::string hit = files.hits()[0], found = Content(*memory, "out/a.onnx");
    EXPECT_TRUE(found == before || found == after) << hit;
    ASSERT_TRUE(WriteOnnxModel(files, config_, changed, kPlace).ok()) << hit;
    EXPECT_EQ(Content(*memory, "out/a.onnx"), after) << hit;
    EXPECT_EQ(Content(*memory, "out/a.onnx.json"), Content(new_disk, "out/a.onnx.json")) << hit;
    EXPECT_THAT(memory->List("out").value(), ElementsAre("a.onnx", "a.onnx.json")) << hit;
  }
  EXPECT_GT(n, 10u);
}

}  // namespace
}  // namespace cistern
