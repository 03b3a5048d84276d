// on_bad_data: which samples are left out, and that it does not depend on how the reader is called.
#include "worker/data/format/skipping_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/worker/data/scratch.h"
#include "worker/data/format/data_set.h"

namespace cistern::data {
namespace {

using testing::HasSubstr;
using testing::Pair;
using testing::UnorderedElementsAre;

std::string NormBytes(int records, float first) {
  std::string bytes = NormHeaderBytes(false, records, 1, 0, 1);
  for (int i = 0; i < records; ++i) {
    bytes += NormSampleBytes(false, {first + static_cast<float>(i)}, {{7}});
  }
  return bytes;
}

// Five files: good, cut short after 1500 records, corrupt in record 700, missing, good.
class SkippingReader : public testing::Test {
 protected:
  SkippingReader() {
    scratch_.Write("0.norm", NormBytes(10, 0));
    scratch_.Write("1.norm", NormBytes(3000, 10000).substr(0, 64 + 1500 * 12 + 5));
    std::string corrupt = NormBytes(2000, 20000);
    corrupt.replace(64 + 700 * 12 + 4, 4, Bytes(int32_t{-1}));
    scratch_.Write("2.norm", corrupt);
    scratch_.Write("4.norm", NormBytes(10, 40000));
    options_.source = scratch_.Write("list", "5\n0.norm\n1.norm\n2.norm\n3.norm\n4.norm\n");
    options_.shape = {1, 0, {1}, {0}};
    options_.bad_data = &bad_;
    for (int i = 0; i < 10; ++i) expected_.push_back(static_cast<float>(i));
    for (int i = 0; i < 1500; ++i) expected_.push_back(10000 + static_cast<float>(i));
    for (int i = 0; i < 700; ++i) expected_.push_back(20000 + static_cast<float>(i));
    for (int i = 0; i < 10; ++i) expected_.push_back(40000 + static_cast<float>(i));
  }

  absl::StatusOr<std::vector<float>> Labels(uint64_t skip, size_t step) {
    CISTERN_ASSIGN_OR_RETURN(const auto reader, OpenDataSet(options_));
    SampleBlock block;
    block.Reset(1);
    CISTERN_RETURN_IF_ERROR(reader->Skip(skip, &block).status());
    while (true) {
      CISTERN_ASSIGN_OR_RETURN(const size_t got, reader->Read(step, &block));
      if (got == 0) return block.label;
    }
  }

  Scratch scratch_;
  BadData bad_;
  DataSetOptions options_;
  std::vector<float> expected_;
};

TEST_F(SkippingReader, LeavesOutTheRestOfBadFilesAndCountsThem) {
  const auto labels = Labels(0, 100);
  ASSERT_TRUE(labels.ok()) << labels.status();
  EXPECT_EQ(*labels, expected_);
  EXPECT_THAT(bad_.counts(), UnorderedElementsAre(Pair("cut short", 1u), Pair("corrupt", 1u),
                                                  Pair("missing", 1u)));
}

TEST_F(SkippingReader, KeepsTheSameSamplesFromAnyPlaceInAnyStep) {
  for (const uint64_t skip : {1, 9, 10, 700, 1510, 2209, 2215, 2220, 9999}) {
    for (const size_t step : {1, 7, 1024, 5000}) {
      const auto labels = Labels(skip, step);
      ASSERT_TRUE(labels.ok()) << labels.status();
      const size_t from = std::min<size_t>(skip, expected_.size());
      EXPECT_EQ(*labels, std::vector<float>(expected_.begin() + from, expected_.end()));
    }
  }
  EXPECT_EQ(bad_.counts()["missing"], 1u);  // a file counts once
}

TEST_F(SkippingReader, FewerSamplesThanDeclaredAreCounted) {
  options_.source = scratch_.Path("0.norm") + "," + scratch_.Path("4.norm");
  options_.num_samples = 20;
  ASSERT_TRUE(Labels(0, 7).ok());
  EXPECT_TRUE(bad_.counts().empty());
  options_.num_samples = 21;
  ASSERT_TRUE(Labels(0, 7).ok());
  EXPECT_THAT(bad_.counts(), UnorderedElementsAre(Pair("cut short", 1u)));
}

TEST_F(SkippingReader, CommaListsCountBadFilesAsFileListsDo) {
  const std::string good = scratch_.Path("0.norm"), other = scratch_.Path("4.norm");
  scratch_.Write("empty.norm", "");
  scratch_.Write("packed.norm", "\x28\xb5\x2f\xfd" + std::string(100, '\xff'));
  const std::vector<float> all(expected_.begin(), expected_.begin() + 10);
  for (const auto& [bad, cause] : std::vector<std::pair<const char*, const char*>>{
           {"no.norm", "missing"}, {"empty.norm", "cut short"}, {"packed.norm", "corrupt"}}) {
    BadData counted;
    options_.bad_data = &counted;
    options_.source = absl::StrCat(good, ",", scratch_.Path(bad), ", ", other);
    const auto labels = Labels(0, 7);
    ASSERT_TRUE(labels.ok()) << labels.status();
    EXPECT_EQ(labels->size(), 20u);
    EXPECT_EQ(std::vector<float>(labels->begin(), labels->begin() + 10), all);
    EXPECT_THAT(counted.counts(), UnorderedElementsAre(Pair(cause, 1u)));
  }
}

TEST_F(SkippingReader, StopsWithoutTheOption) {
  options_.bad_data = nullptr;
  EXPECT_EQ(Labels(0, 10).status().code(), absl::StatusCode::kNotFound);
  options_.source = scratch_.Path("0.norm") + "," + scratch_.Path("2.norm");
  EXPECT_EQ(Labels(0, 100).status().code(), absl::StatusCode::kOutOfRange);
}

TEST_F(SkippingReader, WrongOptionsStopInAnyCase) {
  options_.shape.slot_nums = {2};
  EXPECT_EQ(Labels(0, 10).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(SkippingReader, ADataSetOfBadFilesOnlyIsAnError) {
  options_.source = scratch_.Write("list", "2\n3.norm\n5.norm\n");
  const absl::Status status = Labels(0, 10).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("all files were left out"));
}

}  // namespace
}  // namespace cistern::data
