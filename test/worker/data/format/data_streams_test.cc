// The streams of a data set are the data set, whatever their number, its format and its
// compression.
#include "worker/data/format/data_streams.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "common/io/gzip.h"
#include "test/support/temp_folder.h"
#include "test/worker/data/scratch.h"
#include "worker/data/format/tar_shard_writer.h"

namespace cistern::data {
namespace {

// Norm files of one label, which is the sample's number, and one slot of 0 to 3 keys.
DataSetOptions NormFiles(const Scratch& scratch, const std::vector<int>& sizes) {
  std::mt19937 random(7);
  std::string list = std::to_string(sizes.size()) + "\n";
  int number = 0;
  for (size_t file = 0; file < sizes.size(); ++file) {
    std::string bytes = NormHeaderBytes(false, sizes[file], 1, 0, 1);
    for (int i = 0; i < sizes[file]; ++i) {
      bytes += NormSampleBytes(false, {static_cast<float>(number++)},
                               {std::vector<uint64_t>(random() % 4, 5)});
    }
    const std::string name = std::to_string(file) + ".norm";
    scratch.Write(name, bytes);
    list += name + "\n";
  }
  DataSetOptions options;
  options.source = scratch.Write("list.txt", list);
  options.shape = {1, 0, {1}, {0}};
  return options;
}

DataSetOptions RawFiles(const Scratch& scratch, const std::vector<int>& sizes) {
  std::string source;
  int number = 0;
  for (size_t file = 0; file < sizes.size(); ++file) {
    std::string bytes;
    for (int i = 0; i < sizes[file]; ++i) {
      bytes += Bytes(static_cast<float>(number++)) + Bytes(uint32_t{1});
    }
    source += (file > 0 ? "," : "") + scratch.Write(std::to_string(file) + ".bin", bytes);
  }
  DataSetOptions options;
  options.format = DataFormat::kRaw;
  options.float_label_dense = true;
  options.source = source;
  options.shape = {1, 0, {1}, {0}};
  return options;
}

DataSetOptions TarFiles(const Scratch& scratch, const std::vector<int>& sizes) {
  DataSetOptions options;
  options.format = DataFormat::kTar;
  options.shape = {1, 0, {1}, {0}};
  int number = 0;
  for (size_t file = 0; file < sizes.size(); ++file) {
    const std::string name = scratch.Path(std::to_string(file) + ".tar");
    std::filesystem::remove(name);
    const auto writer = TarShardWriter::Create(Disk(), name);
    EXPECT_TRUE(writer.ok()) << writer.status();
    for (int i = 0; i < sizes[file]; ++i, ++number) {
      const std::string json = absl::StrCat("{\"label\":", number, ",\"slots\":[[1,2]]}");
      EXPECT_TRUE((*writer)->Append(absl::StrCat(number, ".json"), json).ok());
    }
    EXPECT_TRUE((*writer)->Close().ok());
    options.source += (file > 0 ? "," : "") + name;
  }
  return options;
}

// The same files, compressed.
DataSetOptions Zipped(const Scratch& scratch, DataSetOptions options, size_t files) {
  const std::string extension = options.format == DataFormat::kTar ? ".tar" : ".norm";
  options.source.clear();
  for (size_t file = 0; file < files; ++file) {
    const std::string name = std::to_string(file) + extension;
    std::string packed;
    GzipWriter writer;
    writer.Append(scratch.Read(name), &packed);
    writer.Finish(&packed);
    options.source += (file > 0 ? "," : "") + scratch.Write(name + ".gz", packed);
  }
  return options;
}

std::vector<float> Labels(SampleReader& reader) {
  SampleBlock block;
  block.Reset(1);
  while (true) {
    const auto got = reader.Read(5, &block);
    EXPECT_TRUE(got.ok()) << got.status();
    if (!got.ok() || *got == 0) return block.label;
  }
}

std::vector<std::vector<float>> StreamsOf(const DataSetOptions& options, uint32_t wanted,
                                          uint32_t epoch = 0) {
  const auto streams = DataStreams::Divide(options, wanted);
  EXPECT_TRUE(streams.ok()) << streams.status();
  std::vector<std::vector<float>> labels;
  for (uint32_t s = 0; s < streams->size(); ++s) {
    const auto reader = streams->Open(epoch, s);
    EXPECT_TRUE(reader.ok()) << reader.status();
    const std::vector<float>& read = labels.emplace_back(Labels(**reader));
    if ((*reader)->Samples()) {
      EXPECT_EQ(*(*reader)->Samples(), read.size());
    }
  }
  return labels;
}

std::vector<float> Joined(const std::vector<std::vector<float>>& streams) {
  std::vector<float> all;
  for (const auto& stream : streams) all.insert(all.end(), stream.begin(), stream.end());
  return all;
}

// The numbers of these ranges.
std::vector<float> Of(const std::vector<std::pair<int, int>>& ranges) {
  std::vector<float> numbers;
  for (const auto& [begin, end] : ranges) {
    for (int i = begin; i < end; ++i) numbers.push_back(static_cast<float>(i));
  }
  return numbers;
}

std::vector<float> Numbers(int count) {
  return Of({{0, count}});
}

TEST(DataStreams, TakeFilesInTurn) {
  Scratch scratch;
  const DataSetOptions options = NormFiles(scratch, {3, 0, 200, 1, 50, 7, 0});
  EXPECT_THAT(
      StreamsOf(options, 3),
      testing::ElementsAre(Of({{0, 3}, {203, 204}}), Of({{204, 254}}), Of({{3, 203}, {254, 261}})));
  for (const uint32_t wanted : {1, 2, 5, 7}) {
    const auto streams = StreamsOf(options, wanted);
    EXPECT_EQ(streams.size(), wanted);
    std::vector<float> all = Joined(streams);
    std::sort(all.begin(), all.end());
    EXPECT_EQ(all, Numbers(261));
  }
}

TEST(DataStreams, DivideFewerFilesAnywhere) {
  Scratch scratch;
  DataSetOptions options = RawFiles(scratch, {10, 90});
  for (const uint32_t wanted : {1, 3, 8, 1000}) {
    const auto streams = StreamsOf(options, wanted);
    EXPECT_EQ(streams.size(), std::min(wanted, 100u));
    EXPECT_EQ(Joined(streams), Numbers(100));
    for (const auto& stream : streams) EXPECT_NEAR(stream.size(), 100.0 / streams.size(), 1);
  }
  options.num_samples = 37;
  EXPECT_EQ(Joined(StreamsOf(options, 2)), Numbers(37));
}

// A sample can be in any format and compression: its place in the streams does not change.
TEST(DataStreams, AreTheSameInEveryFormat) {
  for (const std::vector<int>& sizes : {std::vector<int>{100}, {3, 1, 200}, {10, 20, 30, 40, 1}}) {
    Scratch scratch;
    const DataSetOptions norm = NormFiles(scratch, sizes);
    const std::vector<DataSetOptions> others = {
        RawFiles(scratch, sizes), TarFiles(scratch, sizes), Zipped(scratch, norm, sizes.size()),
        Zipped(scratch, TarFiles(scratch, sizes), sizes.size())};
    for (const uint32_t wanted : {2, 4, 64}) {
      const auto expected = StreamsOf(norm, wanted);
      for (const DataSetOptions& other : others) {
        EXPECT_EQ(StreamsOf(other, wanted), expected) << other.source;
        EXPECT_EQ(StreamsOf(other, wanted, /*epoch=*/1), expected) << other.source;
      }
    }
  }
}

// A file that is not compressed is stepped over once: then its records are cut out of it without
// reading those before, which is seen by making these unreadable.
TEST(DataStreams, FindPlacesInAFileAgain) {
  Scratch scratch;
  for (DataSetOptions options : {NormFiles(scratch, {300}), TarFiles(scratch, {300})}) {
    const std::string path = FilesOf(options)->at(0);
    const auto streams = DataStreams::Divide(options, 2);
    ASSERT_TRUE(streams.ok()) << streams.status();
    ASSERT_EQ(Labels(**streams->Open(0, 1)).front(), 150);
    std::string bytes = scratch.Read(std::filesystem::path(path).filename());
    const size_t begin = options.format == DataFormat::kNorm ? 64 : 0;
    std::fill(bytes.begin() + begin, bytes.begin() + begin + 1500, '\xff');
    scratch.Write(std::filesystem::path(path).filename(), bytes);
    const auto again = streams->Open(1, 1);
    ASSERT_TRUE(again.ok()) << again.status();
    const std::vector<float> labels = Labels(**again);
    EXPECT_EQ(labels.size(), 150u);
    EXPECT_EQ(labels.front(), 150);
  }
}

TEST(DataStreams, ShuffledFilesChangePlacesWithTheEpoch) {
  Scratch scratch;
  DataSetOptions options = NormFiles(scratch, {10, 20, 30, 40});
  options.shuffle_files = true;
  options.shuffle_seed = 3;
  const auto first = StreamsOf(options, 2, 0), second = StreamsOf(options, 2, 1);
  EXPECT_NE(first, second);
  for (std::vector<float> all : {Joined(first), Joined(second)}) {
    std::sort(all.begin(), all.end());
    EXPECT_EQ(all, Numbers(100));
  }
}

TEST(DataStreams, AStreamOfBadFilesIsEmpty) {
  Scratch scratch;
  DataSetOptions options = NormFiles(scratch, {10, 20, 30});
  scratch.Write("1.norm", "not a data file");
  BadData bad;
  options.bad_data = &bad;
  const auto streams = StreamsOf(options, 3);
  ASSERT_EQ(streams.size(), 3u);
  EXPECT_EQ(streams[0].size(), 10u);
  EXPECT_EQ(streams[1].size(), 0u);
  EXPECT_EQ(streams[2].size(), 30u);
}

TEST(DataStreams, CountOnlyWhatTheyDecode) {
  Scratch scratch;
  for (DataSetOptions options : {NormFiles(scratch, {1000, 1000}), RawFiles(scratch, {2000})}) {
    ReadCounts all, half;
    options.counts = &all;
    EXPECT_EQ(Joined(StreamsOf(options, 2)), Numbers(2000));
    options.counts = &half;
    const auto reader = OpenDataSet(options);
    ASSERT_TRUE(reader.ok()) << reader.status();
    SampleBlock block, lost;
    block.Reset(1);
    lost.Reset(1);
    for (int turn = 0; turn < 10; ++turn) {  // skips every second hundred
      ASSERT_EQ((*reader)->Read(100, &block).value_or(0), 100u);
      ASSERT_EQ((*reader)->Skip(100, &lost).value_or(0), 100u);
    }
    EXPECT_NEAR(static_cast<double>(half.decoded_bytes) / static_cast<double>(all.decoded_bytes),
                0.5, 0.05);
    for (size_t i = 0; i < block.label.size(); ++i) {
      EXPECT_EQ(block.label[i], static_cast<float>(i / 100 * 200 + i % 100));
    }
  }
}

// Records of all lengths, over several buffers of the file.
TEST(DataStreams, NormSkipsRecordsOfAnyLength) {
  Scratch scratch;
  for (const bool sum : {false, true}) {
    for (const bool wide : {false, true}) {
      std::mt19937 random(3);
      constexpr int kRecords = 3000;
      std::string bytes = NormRecordBytes(sum, NormHeaderBytes(sum, kRecords, 1, 1, 2));
      for (int i = 0; i < kRecords; ++i) {
        const size_t keys = random() % 50 == 0 ? random() % 20000 : random() % 4;
        bytes += NormRecordBytes(sum, NormSampleBytes(wide, {static_cast<float>(i), 0.5f},
                                                      {std::vector<uint64_t>(keys, 5), {1, 2}}));
      }
      DataSetOptions options;
      options.source = scratch.Write("a.norm", bytes);
      options.check = sum ? NormCheck::kSum : NormCheck::kNone;
      options.wide_keys = wide;
      options.shape = {1, 1, {2}, {0}};
      const auto reader = OpenDataSet(options);
      ASSERT_TRUE(reader.ok()) << reader.status();
      SampleBlock block, lost;
      lost.Reset(1);
      for (size_t at = 0; at < kRecords;) {
        const uint64_t skip = std::min<uint64_t>(random() % 40, kRecords - at);
        ASSERT_EQ((*reader)->Skip(skip, &lost).value_or(99999), skip);
        at += skip;
        block.Reset(1);
        const auto got = (*reader)->Read(1 + random() % 3, &block);
        ASSERT_TRUE(got.ok()) << got.status();
        for (const float label : block.label) EXPECT_EQ(label, static_cast<float>(at++));
      }
    }
  }
}

TEST(DataStreams, SkippingFindsFilesThatAreCutShort) {
  Scratch scratch;
  std::string bytes = NormHeaderBytes(false, 100, 1, 0, 1);
  for (int i = 0; i < 100; ++i) bytes += NormSampleBytes(false, {0.5f}, {{7, 8}});
  DataSetOptions options;
  options.source = scratch.Write("a.norm", bytes.substr(0, bytes.size() - 30));
  options.shape = {1, 0, {1}, {0}};
  const auto reader = OpenDataSet(options);
  SampleBlock lost;
  lost.Reset(1);
  ASSERT_TRUE((*reader)->Read(1, &lost).ok());
  const auto skipped = (*reader)->Skip(99, &lost);
  EXPECT_EQ(skipped.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(skipped.status().message()),
              testing::AllOf(testing::HasSubstr("record 98"), testing::HasSubstr("cut short")));
}

}  // namespace
}  // namespace cistern::data
