// Encoding blocks on many threads gives the same bytes as on one.
#include "worker/data/format/sample_set_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "test/support/temp_folder.h"
#include "test/worker/data/scratch.h"

namespace cistern::data {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::vector<SampleBlock> Blocks(bool one_key) {
  std::mt19937 random(3);
  std::vector<SampleBlock> blocks(9);
  for (size_t b = 0; b < blocks.size(); ++b) {
    SampleBlock& block = blocks[b];
    block.Reset(1);
    block.size = b * 7 % 23;  // some blocks are empty
    for (size_t i = 0; i < block.size; ++i) {
      block.label.push_back(static_cast<float>(random() % 2));
      block.dense.push_back(static_cast<float>(random() % 100));
      for (int slot = 0; slot < 2; ++slot) {
        for (size_t n = one_key ? 1 : random() % 4; n > 0; --n) {
          block.sparse[0].keys.push_back(random() % 1000);
        }
        block.sparse[0].offsets.push_back(static_cast<uint32_t>(block.sparse[0].keys.size()));
      }
    }
  }
  return blocks;
}

DataSetOptions Options(DataFormat format, NormCheck check) {
  DataSetOptions options;
  options.format = format;
  options.check = check;
  options.shape = {1, 1, {2}, {0}};
  return options;
}

using Files = std::map<std::string, std::string>;

Files FilesOf(const Scratch& scratch) {
  Files files;
  for (const auto& entry : std::filesystem::directory_iterator(scratch.Path("set"))) {
    const std::string name = entry.path().filename();
    files[name] = scratch.Read("set/" + name);
  }
  return files;
}

// The files that a writer makes. threads: for AppendAll; 0: Append, block by block.
Files Written(const DataSetOptions& options, const std::vector<SampleBlock>& blocks, int threads) {
  Scratch scratch;
  std::filesystem::create_directory(scratch.Path("set"));
  auto writer =
      CreateSampleSetWriter(Disk(), scratch.Path("set"), options, /*samples_per_file=*/13);
  EXPECT_TRUE(writer.ok()) << writer.status();
  if (threads == 0) {
    for (const SampleBlock& block : blocks) EXPECT_TRUE((*writer)->Append(block).ok());
  } else {
    ThreadPool pool(threads);
    EXPECT_TRUE((*writer)->AppendAll(blocks, pool).ok());
  }
  EXPECT_TRUE((*writer)->Close().ok());
  return FilesOf(scratch);
}

TEST(SampleSetWriter, BytesDoNotDependOnTheNumberOfThreads) {
  for (const DataSetOptions& options :
       {Options(DataFormat::kNorm, NormCheck::kNone), Options(DataFormat::kNorm, NormCheck::kSum),
        Options(DataFormat::kRaw, NormCheck::kNone)}) {
    const bool raw = options.format == DataFormat::kRaw;
    const std::vector<SampleBlock> blocks = Blocks(raw);
    const Files expected = Written(options, blocks, 0);
    EXPECT_GT(expected.size(), raw ? 1u : 5u);
    for (const int threads : {1, 3, 20}) EXPECT_EQ(Written(options, blocks, threads), expected);
  }
}

TEST(SampleSetWriter, ErrorNamesFileAndRecordOfABadSample) {
  std::vector<SampleBlock> blocks = Blocks(false);
  blocks[4].dense[3] = std::numeric_limits<float>::infinity();
  Scratch scratch;
  std::filesystem::create_directory(scratch.Path("set"));
  auto writer = CreateSampleSetWriter(Disk(), scratch.Path("set"),
                                      Options(DataFormat::kNorm, NormCheck::kSum), 1000);
  ThreadPool pool(3);
  const absl::Status status = (*writer)->AppendAll(blocks, pool);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  // 0 + 7 + 14 + 21 samples before the block.
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("part-00000.norm: record 45"), HasSubstr("dense feature 0")));
}

}  // namespace
}  // namespace cistern::data
