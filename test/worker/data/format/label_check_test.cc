// Refuses labels that a cross entropy does not accept, and names their place.
#include "worker/data/format/label_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "test/worker/data/scratch.h"

namespace cistern::data {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

// Raw samples with two labels and one key each.
class LabelCheck : public testing::Test {
 protected:
  DataSetOptions Data(const std::vector<std::vector<float>>& labels, LabelRule rule) {
    std::string bytes;
    for (const std::vector<float>& pair : labels) {
      bytes += Bytes(pair[0]) + Bytes(pair[1]) + Bytes(uint32_t{7});
    }
    DataSetOptions options;
    options.format = DataFormat::kRaw;
    options.shape = {2, 0, {1}, {0}};
    options.float_label_dense = true;
    options.labels = rule;
    options.source = scratch_.Write("train.bin", bytes);
    return options;
  }

  absl::Status ReadAll(const DataSetOptions& options, size_t step, uint64_t skip = 0) {
    CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<SampleReader> reader, OpenDataSet(options));
    block_.Reset(1);
    CISTERN_RETURN_IF_ERROR(reader->Skip(skip, &block_).status());
    block_.Reset(1);
    for (size_t got = 1; got > 0;) {
      CISTERN_ASSIGN_OR_RETURN(got, reader->Read(step, &block_));
    }
    return absl::OkStatus();
  }

  Scratch scratch_;
  SampleBlock block_;
};

TEST_F(LabelCheck, NamesFileRecordAndLabelAndKeepsEarlierSamples) {
  const DataSetOptions data = Data({{0, 1}, {0.25f, 1}, {1, 2}, {0, 0}}, LabelRule::kProbability);
  for (const size_t step : {1, 3, 100}) {
    const absl::Status status = ReadAll(data, step);
    EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("train.bin: record 2: label 1 is 2,"), HasSubstr("[0, 1]"),
                      HasSubstr("when the data is converted")));
    EXPECT_EQ(block_.size, 2u);
    EXPECT_THAT(block_.label, ElementsAre(0, 1, 0.25f, 1));
    EXPECT_EQ(block_.sparse[0].keys.size(), 2u);
  }
  EXPECT_THAT(std::string(ReadAll(data, 100, /*skip=*/1).message()), HasSubstr("record 2"));
}

TEST_F(LabelCheck, AMissingLabelIsAllowedOnlyIfTheLossSupportsIt) {
  const std::vector<std::vector<float>> labels = {{-1, 1}, {0, -0.6f}};
  EXPECT_TRUE(ReadAll(Data(labels, LabelRule::kProbabilityOrNone), 100).ok());
  EXPECT_EQ(block_.size, 2u);
  EXPECT_THAT(std::string(ReadAll(Data(labels, LabelRule::kProbability), 100).message()),
              HasSubstr("record 0: label 0 is -1"));
  EXPECT_THAT(
      std::string(ReadAll(Data({{0, -0.4f}}, LabelRule::kProbabilityOrNone), 100).message()),
      AllOf(HasSubstr("record 0: label 1 is -0.4"), HasSubstr("-1 for none")));
  EXPECT_TRUE(ReadAll(Data({{5, -7}}, LabelRule::kAny), 100).ok());
}

TEST_F(LabelCheck, AWeightIsAFiniteNumberFromZeroOn) {
  const auto read = [&](float label, float weight, LabelRule rule) {
    DataSetOptions data = Data({{1, 1}, {label, weight}}, rule);
    data.shape.weighted = true;
    return std::string(ReadAll(data, 100).message());
  };
  for (const LabelRule rule : {LabelRule::kProbability, LabelRule::kAny}) {
    for (const float good : {0.0f, 1e-30f, 7.0f, 1e9f}) EXPECT_EQ(read(1, good, rule), "") << good;
    for (const float bad : {-1e-30f, -1.0f, 2e9f}) {
      EXPECT_THAT(read(1, bad, rule), HasSubstr("train.bin: record 1: the weight is")) << bad;
    }
    for (const float bad : {NAN, INFINITY, -INFINITY}) {
      EXPECT_THAT(read(1, bad, rule), HasSubstr("train.bin: record 1: label 1 is not a finite"));
    }
  }
  EXPECT_THAT(read(2, 1, LabelRule::kProbability), HasSubstr("record 1: label 0 is 2"));
  EXPECT_EQ(read(2, 1, LabelRule::kAny), "");
}

}  // namespace
}  // namespace cistern::data
