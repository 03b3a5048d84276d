#include "worker/data/format/keyset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/temp_folder.h"
#include "test/worker/data/scratch.h"

namespace cistern::data {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// Raw samples with one label and two inputs with 2 slots and 1 slot, of sizes 10, 10 and 5.
KeysetOptions Options(const Scratch& scratch, const std::vector<std::vector<uint32_t>>& samples) {
  std::string bytes;
  for (const std::vector<uint32_t>& keys : samples) {
    bytes += Bytes<int>(1);
    for (uint32_t key : keys) bytes += Bytes(key);
  }
  KeysetOptions options;
  options.data.format = DataFormat::kRaw;
  options.data.source = scratch.Write("data.bin", bytes);
  options.data.shape = {1, 0, {2, 1}, {0, 0}};
  options.data.slot_sizes = {10, 10, 5};
  return options;
}

template <typename T>
std::string Keys(std::vector<T> keys) {
  std::string bytes;
  for (T key : keys) bytes += Bytes(key);
  return bytes;
}

TEST(Keyset, HoldsDistinctKeysAscendingAsTheModelSeesThem) {
  Scratch scratch;
  KeysetOptions options = Options(scratch, {{9, 0, 4}, {1, 0, 2}, {9, 0, 4}});
  const auto summary = WriteKeyset(Disk(), options, scratch.Path("keys"));
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(summary->samples, 3u);
  EXPECT_EQ(summary->keys, 5u);
  EXPECT_EQ(scratch.Read("keys"), Keys<uint64_t>({1, 9, 10, 22, 24}));
  options.wide_keys = false;
  ASSERT_TRUE(WriteKeyset(Disk(), options, scratch.Path("keys")).ok());
  EXPECT_EQ(scratch.Read("keys"), Keys<uint32_t>({1, 9, 10, 22, 24}));
  options.input = 1;
  ASSERT_TRUE(WriteKeyset(Disk(), options, scratch.Path("keys")).ok());
  EXPECT_EQ(scratch.Read("keys"), Keys<uint32_t>({22, 24}));
}

TEST(Keyset, AcceptsAnyOrderAndDuplicates) {
  Scratch scratch;
  const KeysetOptions options = Options(scratch, {{9, 0, 4}, {1, 0, 2}});
  const std::string path = scratch.Write("keys", Keys<uint64_t>({24, 10, 22, 10, 77, 9, 1}));
  const auto summary = CheckKeyset(options, path);
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(summary->in_file, 7u);
  EXPECT_EQ(summary->duplicates, 1u);
  EXPECT_EQ(summary->unused, 1u);
  EXPECT_EQ(summary->keys, 5u);
}

TEST(Keyset, NamesTheFirstMissingKeyAndItsPlace) {
  Scratch scratch;
  const KeysetOptions options = Options(scratch, {{9, 0, 4}, {1, 0, 2}});
  const std::string path = scratch.Write("keys", Keys<uint64_t>({24, 10, 9, 1}));
  const absl::Status status = CheckKeyset(options, path).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("keys lacks key 22"), HasSubstr("sample 1"),
                    HasSubstr("data.bin has in slot 0 of input 1")));
}

TEST(Keyset, RefusesFilesThatAreNotKeysets) {
  Scratch scratch;
  const KeysetOptions options = Options(scratch, {{9, 0, 4}});
  const auto error = [&](const std::string& bytes) {
    const absl::Status status = CheckKeyset(options, scratch.Write("keys", bytes)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    return std::string(status.message());
  };
  EXPECT_THAT(error("12345"), HasSubstr("5 bytes are not a whole number of 8-byte keys"));
  EXPECT_THAT(error(Keys<uint64_t>({1, 0x7FFFFFFFFFFFFFFF})), HasSubstr("key 1 is 9223372036854"));
  EXPECT_THAT(error(Keys<int64_t>({-5})), HasSubstr("key 0 is -5"));
  EXPECT_EQ(CheckKeyset(options, scratch.Path("absent")).status().code(),
            absl::StatusCode::kNotFound);
}

TEST(Keyset, RefusesKeysThatDoNotFitAndLeavesNoFile) {
  Scratch scratch;
  KeysetOptions options = Options(scratch, {{0, 0, 0}});
  options.data.slot_sizes = {uint64_t{1} << 32, 10, 5};
  options.wide_keys = false;
  EXPECT_EQ(WriteKeyset(Disk(), options, scratch.Path("keys")).status().code(),
            absl::StatusCode::kOutOfRange);
  EXPECT_FALSE(std::filesystem::exists(scratch.Path("keys")));
}

TEST(Keyset, DataIsReadUpToTheFirstMissingKey) {
  Scratch scratch;
  DataSetOptions data = Options(scratch, {{9, 0, 4}, {1, 0, 2}, {9, 0, 4}, {1, 3, 2}}).data;
  // Two files with the key width of the data. Together they hold all keys but 3 of the second slot.
  data.keysets = {scratch.Write("a", Keys<uint32_t>({9, 10, 24})),
                  scratch.Write("b", Keys<uint32_t>({22, 1}))};
  SampleBlock block;
  block.Reset(2);
  auto reader = OpenDataSet(data);
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ((*reader)->Skip(1, &block).value_or(0), 1u);
  block.Reset(2);
  const absl::Status status = (*reader)->Read(100, &block).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("data.bin: record 3: slot 1 of input 0: key 13 is not in the keyset"),
                    HasSubstr("/a, "), HasSubstr("/b: rewrite it")));
  EXPECT_EQ(block.size, 2u);
  EXPECT_EQ(block.sparse[0].keys.size(), 4u);
  data.keysets.push_back(scratch.Write("c", Keys<uint32_t>({13})));
  reader = OpenDataSet(data);
  ASSERT_TRUE(reader.ok()) << reader.status();
  block.Reset(2);
  EXPECT_EQ((*reader)->Read(100, &block).value_or(0), 4u);
  data.keysets = {scratch.Path("nowhere")};
  EXPECT_EQ(OpenDataSet(data).status().code(), absl::StatusCode::kNotFound);
}

TEST(Keyset, RefusesTheFirstRecordWithAMissingKeyInAnyInput) {
  Scratch scratch;
  DataSetOptions data = Options(scratch, {{9, 0, 4}, {9, 0, 2}, {1, 0, 4}}).data;
  // Holds neither key 22 of input 1 in the second record nor key 1 of input 0 in the third.
  data.keysets = {scratch.Write("a", Keys<uint32_t>({9, 10, 24}))};
  const auto reader = OpenDataSet(data);
  ASSERT_TRUE(reader.ok()) << reader.status();
  SampleBlock block;
  block.Reset(2);
  EXPECT_THAT(std::string((*reader)->Read(10, &block).status().message()),
              HasSubstr("record 1: slot 0 of input 1: key 22 is not in the keyset"));
  EXPECT_EQ(block.size, 1u);
}

}  // namespace
}  // namespace cistern::data
