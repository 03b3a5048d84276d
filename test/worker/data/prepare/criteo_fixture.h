// Shared by the tests of DLRM's preparation: makes days of a few lines and reads the output.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "test/worker/data/scratch.h"
#include "worker/data/prepare/criteo.h"

namespace cistern::data {

// A line with the given label, first dense field and first two sparse fields; others are 0 or
// empty.
inline std::string Line(int label, const std::string& i1, const std::string& c1,
                        const std::string& c2) {
  std::string line = absl::StrCat(label, "\t", i1);
  for (int i = 1; i < 13; ++i) line += "\t0";
  line += "\t" + c1 + "\t" + c2;
  for (int i = 2; i < 26; ++i) line += "\t";
  return line + "\n";
}

inline CriteoOptions Options(const Scratch& scratch, const std::vector<std::string>& days) {
  CriteoOptions options;
  for (size_t i = 0; i < days.size(); ++i) {
    options.days.push_back(scratch.Write(absl::StrCat("day_", i), days[i]));
  }
  options.out = scratch.Path("out");
  options.shuffle = false;
  return options;
}

inline CriteoOptions ThreeDays(const Scratch& scratch) {
  return Options(scratch, {Line(1, "0", "00ff", "a") + Line(0, "", "", "a"),
                           Line(0, "-2", "1", "b") + Line(1, "5", "ff", "a"),
                           Line(1, "-7", "00ff", "c") + Line(0, "3", "2", "b")});
}

inline SampleBlock ReadSet(const CriteoOptions& options, const CriteoSummary& summary,
                           const std::string& source) {
  DataSetOptions data;
  data.format = options.format;
  data.source = source;
  data.check = options.check;
  data.float_label_dense = true;
  data.shape = {1, 13, {26}, {0}};
  if (options.format != DataFormat::kNorm) data.slot_sizes = summary.slot_sizes;
  SampleBlock block;
  block.Reset(1);
  auto reader = OpenDataSet(data);
  EXPECT_TRUE(reader.ok()) << reader.status();
  if (!reader.ok()) return block;
  for (size_t got = 1; got > 0;) {
    const auto read = (*reader)->Read(1000, &block);
    EXPECT_TRUE(read.ok()) << read.status();
    got = read.ok() ? *read : 0;
  }
  return block;
}

inline std::string ErrorOf(const CriteoOptions& options, absl::StatusCode code) {
  const absl::Status status = PrepareCriteo(options, nullptr).status();
  EXPECT_EQ(status.code(), code) << status;
  EXPECT_FALSE(std::filesystem::exists(options.out));
  return std::string(status.message());
}

}  // namespace cistern::data
