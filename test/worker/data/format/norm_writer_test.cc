#include "worker/data/format/norm_writer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "test/support/temp_folder.h"
#include "test/worker/data/scratch.h"

namespace cistern::data {
namespace {

TEST(NormWriter, RefusesSamplesThatReadersWouldRefuse) {
  Scratch scratch;
  SampleBlock block;
  block.Reset(1);
  block.size = 1;
  block.label = {1};
  block.sparse[0].offsets = {0, 2};
  block.sparse[0].keys = {1, 0xFFFFFFFF};
  const auto append = [&](const NormWriterOptions& options) {
    return (*NormWriter::Create(Disk(), scratch.Path("a"), options))->Append(block).code();
  };
  EXPECT_EQ(append({NormCheck::kNone, false, {1, 0, {1}, {}}}), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(append({NormCheck::kNone, true, {1, 0, {1}, {}}}), absl::StatusCode::kOk);
  EXPECT_EQ(append({NormCheck::kNone, true, {1, 0, {1}, {1}}}), absl::StatusCode::kOutOfRange);
  block.label = {std::nanf("")};
  EXPECT_EQ(append({NormCheck::kNone, true, {1, 0, {1}, {}}}), absl::StatusCode::kDataLoss);
  EXPECT_TRUE(scratch.Read("a").empty());
  EXPECT_FALSE(std::filesystem::exists(scratch.Path("a.tmp")));
}

}  // namespace
}  // namespace cistern::data
