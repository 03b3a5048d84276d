// Input that the conversion refuses: the error messages, and that no files are left.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "test/worker/data/prepare/convert_fixture.h"
#include "worker/data/prepare/convert.h"

namespace cistern::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using ConvertErrors = ConvertTest;

TEST_F(ConvertErrors, RefusesBadInputWithLineColumnCauseAndFix) {
  const ConvertOptions raw = Raw();
  ConvertOptions narrow = raw;
  narrow.key_bits = 32;
  ConvertOptions dense;
  dense.dense = {"a"};
  EXPECT_THAT(ErrorOf("label,a\n1,2\n1,2,3\n", raw),
              HasSubstr("input: line 3: has 3 fields, but there are 2 columns"));
  EXPECT_THAT(ErrorOf("label,a\n\n1,2\nx,2\n", raw),
              HasSubstr("input: line 4: column 'label': 'x' is not a number"));
  EXPECT_THAT(ErrorOf("label,a\n,2\n", raw), HasSubstr("column 'label': the label is missing"));
  EXPECT_THAT(ErrorOf("label,a\nnan,2\n", raw), HasSubstr("'nan' is not a number"));
  EXPECT_THAT(ErrorOf("label,a\n1,two\n", raw), HasSubstr("hashed keys"));
  EXPECT_THAT(ErrorOf("label,a\n1,-2\n", raw), HasSubstr("'-2' is not an integer of 0 or more"));
  EXPECT_THAT(ErrorOf("label,a\n1,4294967295\n", narrow), HasSubstr("use 64-bit keys"));
  EXPECT_THAT(ErrorOf("label,a\n1,9223372036854775807\n", raw), HasSubstr("is not in [0, "));
  EXPECT_THAT(ErrorOf("label,a\n1,99999999999999999999\n", raw), HasSubstr("is not in [0, "));
  EXPECT_THAT(ErrorOf("label,a,b\n1,1e39,1\n", dense), HasSubstr("'1e39' does not fit a float"));
  EXPECT_THAT(ErrorOf("label,a,b\n1,0x1f,1\n", dense),
              HasSubstr("column 'a': '0x1f' is not a number"));
  EXPECT_THAT(ErrorOf("label,a\n1,\"x\n2,y\n", {}), HasSubstr("line 2: opens a quote"));
  EXPECT_THAT(ErrorOf("label,a\n1,\"x\"y\n", {}), HasSubstr("text after the closing quote"));
  EXPECT_THAT(ErrorOf("label,a,a\n", {}), HasSubstr("column 'a' is named twice"));
  EXPECT_THAT(ErrorOf("", {}), HasSubstr("is empty"));
  EXPECT_THAT(ErrorOf("label,a\n", {}), HasSubstr("no row to convert"));
  EXPECT_THAT(ErrorOf(std::string("label,a\n1,\0\n", 12), {}), HasSubstr("zero byte"));
  EXPECT_THAT(ErrorOf("label,a\n" + std::string(20 << 20, 'x'), {}),
              HasSubstr("longer than 16 MiB"));
}

TEST_F(ConvertErrors, RefusesInconsistentOptions) {
  const std::string text = "label,a\n1,2\n";
  ConvertOptions options;
  options.label = {"click"};
  EXPECT_THAT(ErrorOf(text, options), HasSubstr("no column 'click'; the columns are"));
  options = Raw();
  options.missing = StandIn::kKey;
  EXPECT_THAT(ErrorOf(text, options), HasSubstr("needs hashed keys"));
  const auto cross = [&](std::vector<std::string> crosses, KeyMode keys = KeyMode::kHash) {
    ConvertOptions crossed;
    crossed.cross = std::move(crosses);
    crossed.keys = keys;
    return ErrorOf("label,a,b,a_x_b\n1,2,3,4\n", crossed);
  };
  EXPECT_THAT(cross({"a"}), HasSubstr("cross a: a cross needs 2 to 8 columns"));
  EXPECT_THAT(cross({"b,b"}), HasSubstr("a column is repeated"));
  EXPECT_THAT(cross({"b,c"}), HasSubstr("no column 'c'"));
  EXPECT_THAT(cross({"b,label"}), HasSubstr("is the label"));
  EXPECT_THAT(cross({"a,b"}), HasSubstr("but a column has that name"));
  EXPECT_THAT(cross({"b,a", "b,a"}), HasSubstr("given twice"));
  EXPECT_THAT(cross({"b,a"}, KeyMode::kRaw), HasSubstr("a cross needs hashed keys"));
  options = Raw();
  options.min_count = 2;
  EXPECT_THAT(ErrorOf(text, options), HasSubstr("drop rare values"));
  options = {};
  options.sparse = {"C3..C1"};
  EXPECT_THAT(ErrorOf(text, options), HasSubstr("not a range of columns"));
  options = {};
  options.dense = {"label"};
  EXPECT_THAT(ErrorOf(text, options), HasSubstr("is both a label and a feature"));
  options = {};
  options.min_count = 2;
  options.input = {"-"};
  EXPECT_THAT(std::string(Run(options).message()), HasSubstr("cannot be read twice"));
}

TEST_F(ConvertErrors, AFolderWithOtherFilesIsNotTouched) {
  ConvertOptions options;
  options.input = {scratch_.Write("input", "label,a\n1,2\n")};
  scratch_.Write("mine/diary", "dear");
  options.out = scratch_.Path("mine");
  options.overwrite = true;
  EXPECT_THAT(std::string(Convert(options).status().message()), HasSubstr("is not a data set"));
  EXPECT_EQ(scratch_.Read("mine/diary"), "dear");
  options.out = scratch_.Path("out");
  ASSERT_TRUE(Convert(options).ok());
  ASSERT_TRUE(Convert(options).ok());
  options.overwrite = false;
  EXPECT_THAT(std::string(Convert(options).status().message()), HasSubstr("overwrite it"));
}

TEST_F(ConvertErrors, FailureAndStopLeaveNothingBehind) {
  const auto entries = [&] {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(scratch_.Path("")))
      names.insert(entry.path().filename().string());
    return names;
  };
  std::string text = "label,a\n";
  for (int i = 0; i < 10000; ++i) text += "1,2\n";
  EXPECT_THAT(ErrorOf(text + "1\n", {}), HasSubstr("line 10002: '1' is one field"));
  EXPECT_THAT(entries(), ElementsAre("input"));
  ConvertOptions options;
  options.input = {scratch_.Write("input", text)};
  options.out = scratch_.Path("out");
  uint64_t rows = 0;
  const auto stopped = Convert(options, [&](const ConvertProgress& progress) {
    rows = progress.rows;
    EXPECT_EQ(progress.bytes_total, text.size());
    return progress.rows < 8000;
  });
  EXPECT_EQ(stopped.status().code(), absl::StatusCode::kCancelled);
  EXPECT_GE(rows, 8000u);
  EXPECT_THAT(entries(), ElementsAre("input"));
}

}  // namespace
}  // namespace cistern::data
