#include "worker/data/prepare/inspect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "test/worker/data/scratch.h"
#include "worker/data/format/format_list.h"

namespace cistern::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

std::string File(bool sum, bool wide) {
  std::string bytes = NormRecordBytes(sum, NormHeaderBytes(sum, 3, 1, 1, 2));
  bytes += NormRecordBytes(sum, NormSampleBytes(wide, {1, 0.5f}, {{7, 8}, {1000}}));
  bytes += NormRecordBytes(sum, NormSampleBytes(wide, {0, -2}, {{7}, {}}));
  return bytes + NormRecordBytes(sum, NormSampleBytes(wide, {0, 0}, {{9}, {1000}}));
}

TEST(Inspect, FindsCheckWidthAndStatistics) {
  Scratch scratch;
  for (bool sum : {false, true}) {
    for (bool wide : {false, true}) {
      scratch.Write("a", File(sum, wide));
      scratch.Write("b", File(sum, wide));
      InspectOptions options;
      options.source = scratch.Write("list", "2\na\nb\n");
      options.print = 2;
      options.top = 1;
      const auto summary = InspectNorm(options);
      ASSERT_TRUE(summary.ok()) << summary.status();
      EXPECT_EQ(summary->check, sum ? NormCheck::kSum : NormCheck::kNone);
      EXPECT_EQ(summary->key_bits, wide ? 64 : 32);
      EXPECT_EQ(summary->files, 2u);
      EXPECT_EQ(summary->records, 6u);
      EXPECT_EQ(summary->samples, 6u);
      EXPECT_EQ(summary->max_keys, 3u);
      EXPECT_DOUBLE_EQ(summary->label[0].mean, 1.0 / 3);
      EXPECT_EQ(summary->dense[0].mean, -0.5);
      EXPECT_EQ(summary->dense[0].min, -2);
      EXPECT_EQ(summary->dense[0].max, 0.5);
      EXPECT_EQ(summary->dense[0].zeros, 2u);
      EXPECT_EQ(summary->slots[0].keys, 8u);
      EXPECT_EQ(summary->slots[0].max_keys, 2u);
      EXPECT_EQ(summary->slots[0].distinct, 3u);
      EXPECT_THAT(summary->slots[0].top, ElementsAre(Pair(7, 4)));
      EXPECT_EQ(summary->slots[1].empty, 2u);
      EXPECT_THAT(summary->first, ElementsAre("label 1 | dense 0.5 | 0: 7 8 | 1: 1000",
                                              "label 0 | dense -2 | 0: 7 | 1:"));
      const std::string text = InspectionText(*summary);
      EXPECT_THAT(text, HasSubstr(sum ? "check Sum" : "check None"));
      EXPECT_THAT(text, HasSubstr("6 records"));
      EXPECT_THAT(text, HasSubstr("top 7 x4"));
      const auto json = nlohmann::json::parse(InspectionJson(*summary));
      EXPECT_EQ(json["slots"][1]["top"][0]["key"], 1000);
      EXPECT_EQ(json["dense"][0]["min"], -2);
    }
  }
}

TEST(Inspect, InspectsAtMostMaxSamples) {
  Scratch scratch;
  InspectOptions options;
  options.source = scratch.Write("a", File(true, true));
  options.max_samples = 2;
  EXPECT_EQ(InspectNorm(options)->samples, 2u);
}

TEST(Inspect, RefusesInvalidFiles) {
  Scratch scratch;
  InspectOptions options;
  options.source = scratch.Write("a", File(false, true) + "xyz");
  EXPECT_THAT(std::string(InspectNorm(options).status().message()),
              HasSubstr("a: is valid neither with 8-byte keys"));
  options.source = scratch.Write("a", File(true, true));
  options.key_bits = 32;
  EXPECT_THAT(std::string(InspectNorm(options).status().message()), HasSubstr("I64?"));
  options.source = scratch.Write("a", "hello");
  EXPECT_EQ(InspectNorm(options).status().code(), absl::StatusCode::kDataLoss);
}

TEST(Inspect, ReadsRawFilesWithTheGivenOptions) {
  Scratch scratch;
  InspectOptions options;
  std::string bytes;
  for (int x : {1, 7, 3, 0, 0, 7, 4, 1, 1, 7, 3, 2}) bytes += Bytes(x);  // label, dense, two keys
  options.source = scratch.Write("a.bin", bytes);
  options.max_samples = 2;
  options.print = 1;
  DataSetOptions data;
  data.format = DataFormat::kRaw;
  data.shape = {1, 1, {1, 1}, {0, 0}};
  data.slot_sizes = {10, 5};
  const auto summary = InspectDataSet(options, data);
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(summary->records, 3u);
  EXPECT_EQ(summary->samples, 2u);
  EXPECT_EQ(summary->slots[1].distinct, 2u);
  EXPECT_THAT(summary->first, ElementsAre("label 1 | dense 2.07944 | 0: 3 | 1: 10"));
  EXPECT_THAT(InspectionText(*summary), HasSubstr("Raw, keys with the offsets"));
  EXPECT_EQ(nlohmann::json::parse(InspectionJson(*summary))["format"], "Raw");
}

// Slots of Norm and tar hold keys as the model sees them; offsets are added in the other formats.
TEST(Inspect, SaysWhichFormatsGetOffsets) {
  for (const DataFormatEntry& entry : DataFormats()) {
    NormSummary summary;
    summary.format = entry.format;
    summary.shape.slot_nums = {0};
    const std::string text = InspectionText(summary);
    EXPECT_THAT(text, HasSubstr(entry.name));
    EXPECT_EQ(absl::StrContains(text, "slot_size_array"), !entry.key_lists) << text;
  }
}

}  // namespace
}  // namespace cistern::data
