// Rows from pyarrow (test/golden/arrow): as CSV, JSON, Parquet and Arrow in many types they are the
// same samples, and every message that lies is refused with its place.
#include "worker/data/feed/payload_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "worker/data/format/parquet_reader.h"
#include "worker/data/recipe/text_samples.h"

namespace cistern::data {
namespace {

using testing::HasSubstr;

constexpr size_t kRows = 11;
const std::vector<uint32_t> kSlots = {4};

std::string Golden(const std::string& name) {
  return CISTERN_SOURCE_DIR "/test/golden/arrow/" + name;
}

std::string Contents(const std::string& name) {
  std::ifstream file(Golden(name), std::ios::binary);
  std::string content{std::istreambuf_iterator<char>(file), {}};
  EXPECT_FALSE(content.empty()) << name;
  return content;
}

std::shared_ptr<const OwnedEncoder> Encoder() {
  Recipe recipe;
  recipe.layout.columns = {"id", "click", "price", "user", "tags", "item", "day"};
  recipe.labels = {{"click", std::nullopt, {}}};
  recipe.dense = {{.column = "price", .missing = -7}};
  recipe.slots = {{.column = "user"},
                  {.column = "tags", .separator = ';'},
                  {.column = "item"},
                  {.column = "day"}};
  return *OwnedEncoder::Open(recipe, "");
}

class PayloadReaderTest : public testing::Test {
 protected:
  void SetUp() override {
    auto reader = ReadRecipePayload(Encoder(), kSlots);
    ASSERT_TRUE(reader.ok()) << reader.status();
    reader_ = *std::move(reader);
  }
  // Reads a message row by row, as a partition does.
  absl::Status Read(absl::string_view message, SampleBlock* block) {
    reader_->Begin(message, "clicks/0: offset 17");
    block->Reset(1);
    while (!reader_->at_end()) {
      CISTERN_ASSIGN_OR_RETURN(const size_t got, reader_->Read(1, block));
      if (got == 0) break;
    }
    return absl::OkStatus();
  }
  SampleBlock ReadAll(const std::string& message) {
    SampleBlock block;
    const absl::Status read = Read(message, &block);
    EXPECT_TRUE(read.ok()) << read;
    return block;
  }
  // The error of a message, which has its place.
  std::string ErrorOf(absl::string_view message) {
    SampleBlock block;
    const absl::Status read = Read(message, &block);
    EXPECT_TRUE(absl::IsDataLoss(read)) << read;
    return std::string(read.message());
  }

  std::unique_ptr<PayloadReader> reader_;
};

void ExpectSame(const SampleBlock& found, const SampleBlock& expected) {
  EXPECT_EQ(found.size, expected.size);
  EXPECT_EQ(found.label, expected.label);
  EXPECT_EQ(found.dense, expected.dense);
  EXPECT_EQ(found.sparse[0].keys, expected.sparse[0].keys);
  EXPECT_EQ(found.sparse[0].offsets, expected.sparse[0].offsets);
}

SampleBlock ReadTable(const std::string& name,
                      const std::shared_ptr<const OwnedEncoder>& encoder = Encoder()) {
  TextInput input;
  input.files = {Golden(name)};
  input.labels = Labels::kNeeded;
  SampleBlock block;
  block.Reset(1);
  const std::vector<uint32_t> slots = {static_cast<uint32_t>(encoder->recipe().slots.size())};
  const auto reader = OpenTextSamples(encoder, input, slots, nullptr);
  EXPECT_TRUE(reader.ok()) << reader.status();
  EXPECT_TRUE((*reader)->Read(100, &block).ok());
  return block;
}

TEST_F(PayloadReaderTest, ReadsTheSameSamplesOfEveryForm) {
  const std::string csv = Contents("rows.csv");
  const SampleBlock expected = ReadAll(csv.substr(csv.find('\n') + 1));
  ASSERT_EQ(expected.size, kRows);
  EXPECT_EQ(expected.dense[4], -7);
  EXPECT_EQ(expected.sparse[0].offsets[16] - expected.sparse[0].offsets[12], 6u);  // three tags
  ExpectSame(ReadAll(Contents("rows.jsonl")), expected);
  ExpectSame(ReadTable("rows.csv"), expected);
  ExpectSame(ReadTable("rows.jsonl"), expected);
  if (ParquetLibrary().empty()) GTEST_SKIP() << "built without Arrow";
  ExpectSame(ReadTable("rows.parquet"), expected);
  for (const auto& entry : std::filesystem::directory_iterator(Golden("good"))) {
    const std::string name = entry.path().filename();
    SCOPED_TRACE(name);
    const SampleBlock found = ReadAll(Contents("good/" + name));
    if (name == "no_rows") {
      EXPECT_EQ(found.size, 0u);
    } else {
      ExpectSame(found, expected);
    }
  }
  // A message of another kind may follow.
  ExpectSame(ReadAll(Contents("rows.jsonl")), expected);
}

TEST_F(PayloadReaderTest, ReadsTimesOfDayAndDurationsAsTheirText) {
  if (ParquetLibrary().empty()) GTEST_SKIP() << "built without Arrow";
  Recipe recipe;
  recipe.layout.columns = {"click", "s", "ms", "us", "ns", "took", "days"};
  recipe.labels = {{"click", std::nullopt, {}}};
  for (const char* const name : {"s", "ms", "us", "ns", "took", "days"}) {
    recipe.slots.push_back({.column = name});
  }
  auto reader = ReadRecipePayload(*OwnedEncoder::Open(recipe, ""), std::vector<uint32_t>{6});
  ASSERT_TRUE(reader.ok()) << reader.status();
  reader_ = *std::move(reader);
  const std::string csv = Contents("clocks.csv");
  const SampleBlock expected = ReadAll(csv.substr(csv.find('\n') + 1));
  ASSERT_EQ(expected.size, 3u);
  ExpectSame(ReadAll(Contents("clocks")), expected);
}

TEST_F(PayloadReaderTest, ReadsStructsMapsAndVectorsAsColumns) {
  if (ParquetLibrary().empty()) GTEST_SKIP() << "built without Arrow";
  Recipe recipe;
  recipe.layout.columns = {"click", "user.os", "user.screen.wide", "seen.id", "seen.by.name", "map",
                           "vec.0", "vec.1"};
  recipe.labels = {{"click", std::nullopt, {}}};
  recipe.slots = {{.column = "user.os"},
                  {.column = "user.screen.wide"},
                  {.column = "seen.id", .separator = '|'},
                  {.column = "seen.by.name", .separator = '|'},
                  {.column = "map", .separator = '|'},
                  {.column = "vec.0"},
                  {.column = "vec.1"}};
  const auto encoder = *OwnedEncoder::Open(recipe, "");
  auto reader = ReadRecipePayload(encoder, std::vector<uint32_t>{7});
  ASSERT_TRUE(reader.ok()) << reader.status();
  reader_ = *std::move(reader);
  const std::string csv = Contents("structs.csv");
  const SampleBlock expected = ReadAll(csv.substr(csv.find('\n') + 1));
  ASSERT_EQ(expected.size, 4u);
  EXPECT_EQ(expected.sparse[0].offsets.back(), 17u);  // values in structs.csv
  ExpectSame(ReadAll(Contents("structs")), expected);
  ExpectSame(ReadTable("structs.csv", encoder), expected);
  ExpectSame(ReadTable("structs.parquet", encoder), expected);
}

TEST_F(PayloadReaderTest, ReadsWholeListsAndObjectsForTheirParts) {
  Recipe recipe;
  recipe.layout.columns = {"click", "vec", "ctx", "vec.0", "vec.1", "ctx.os"};
  recipe.labels = {{"click", std::nullopt, {}}};
  recipe.dense = {{.column = "vec.0"}, {.column = "vec.1"}};
  recipe.slots = {{.column = "ctx.os"}};
  auto reader = ReadRecipePayload(*OwnedEncoder::Open(recipe, ""), std::vector<uint32_t>{1});
  ASSERT_TRUE(reader.ok()) << reader.status();
  reader_ = *std::move(reader);
  const SampleBlock expected = ReadAll("1,,,0.5,-2,linux\n0,,,7,1.5,ios\n");
  EXPECT_THAT(expected.dense, testing::ElementsAre(0.5f, -2.0f, 7.0f, 1.5f));
  ExpectSame(ReadAll("1,\"[0.5, -2]\",os=linux&x=1\n0,7 1.5,\"{'os': 'ios'}\"\n"), expected);
  ExpectSame(ReadAll("{\"click\": 1, \"vec\": [0.5, -2], \"ctx\": {\"os\": \"linux\"}}\n"
                     "{\"click\": 0, \"vec.0\": 7, \"vec.1\": 1.5, \"ctx\": \"os=ios\"}\n"),
             expected);
  EXPECT_THAT(ErrorOf("{\"click\": 1, \"vec\": [0.5], \"ctx\": {}}"),
              HasSubstr("row 0: column 'vec': '0.5' is no list of 2 values"));
  EXPECT_THAT(ErrorOf("1,7 1.5"), HasSubstr("has 2 fields; send 3: click, vec, ctx; or a JSON"));
}

TEST_F(PayloadReaderTest, ShowsTheEndWithTheLastRow) {
  if (ParquetLibrary().empty()) GTEST_SKIP() << "built without Arrow";
  const std::string message = Contents("good/batches");
  reader_->Begin(message, "clicks/0: offset 17");
  SampleBlock block;
  block.Reset(1);
  for (size_t row = 0; row < kRows; ++row) {
    EXPECT_FALSE(reader_->at_end()) << row;
    EXPECT_EQ(reader_->Read(1, &block).value(), 1u);
    EXPECT_EQ(reader_->PlaceOf(0), absl::StrCat("clicks/0: offset 17: row ", row));
  }
  EXPECT_TRUE(reader_->at_end());
  EXPECT_EQ(reader_->Read(1, &block).value(), 0u);
}

TEST_F(PayloadReaderTest, RefusesArrowThatLies) {
  if (ParquetLibrary().empty()) GTEST_SKIP() << "built without Arrow";
  const std::vector<std::pair<std::string, std::string>> faults = {
      {"no_click", "row 0: there is no column 'click'"},
      {"nothing", "row 0: has none of the columns"},
      {"null_click", "row 9: column 'click'"},
      {"text_click", "row 6: column 'click': 'maybe' is not a number"},
      {"struct", "row 0: there is no column 'user'"},
      {"lists_of_lists", "row 0: column 'tags' is list<"},
      {"separator", "row 5: a value of the list 'tags' contains ';'"},
      {"twice", "row 0: has two columns 'user'"},
      {"file", "row 0: is an Arrow file: write an Arrow stream"},
      {"two_streams", "row 11: has 1720 bytes after the end"},
      {"no_end", "row 11: is cut short"},
      {"index", "row 0: is not a valid Arrow stream"},
      {"offsets", "row 0: is not a valid Arrow stream"},
      {"not_utf8", "row 0: is not a valid Arrow stream"},
      {"huge", "row 0: is corrupt: a part of it requests 209715200 bytes of memory"},
  };
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(Golden("bad"))) {
    files += entry.is_regular_file() ? 1 : 0;
  }
  EXPECT_EQ(files, faults.size());
  for (const auto& [name, error] : faults) {
    SCOPED_TRACE(name);
    EXPECT_THAT(ErrorOf(Contents("bad/" + name)), HasSubstr("clicks/0: offset 17: " + error));
  }
}

TEST_F(PayloadReaderTest, RefusesEveryPartOfAStream) {
  if (ParquetLibrary().empty()) GTEST_SKIP() << "built without Arrow";
  for (const char* name : {"good/batches", "good/dictionaries", "good/zstd"}) {
    const std::string message = Contents(name);
    for (size_t size = 4; size < message.size(); ++size) {
      EXPECT_THAT(ErrorOf(absl::string_view(message).substr(0, size)),
                  HasSubstr("clicks/0: offset 17: row "))
          << name << " " << size;
    }
  }
}

TEST_F(PayloadReaderTest, SaysWhatIsMissingInABuildWithoutArrow) {
  if (!ParquetLibrary().empty()) GTEST_SKIP() << "built with Arrow";
  SampleBlock block;
  const absl::Status read = Read(Contents("good/plain"), &block);
  EXPECT_TRUE(absl::IsInvalidArgument(read)) << read;
  EXPECT_THAT(read.message(), HasSubstr("scripts/install_deps.sh"));
}

}  // namespace
}  // namespace cistern::data
