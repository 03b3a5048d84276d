// A data format that the library does not know: lines of "sample LABEL KEY", one slot.
#include "worker/data/format/format_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "common/io/file_system.h"
#include "worker/data/format/sample_set_writer.h"

namespace cistern::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class LinesReader : public SampleReader {
 public:
  explicit LinesReader(const std::string& path) : file_(path) {}
  absl::StatusOr<size_t> Read(size_t max_samples, SampleBlock* block) override {
    float label = 0;
    Key key = 0;
    std::string word;
    size_t done = 0;
    for (; done < max_samples && file_ >> word >> label >> key; ++done) {
      block->label.push_back(label);
      block->sparse[0].keys.push_back(key);
      block->sparse[0].offsets.push_back(static_cast<uint32_t>(block->sparse[0].keys.size()));
    }
    block->size += done;
    return done;
  }

 private:
  std::ifstream file_;
};

class LineWriter : public SampleSetWriter {
 public:
  explicit LineWriter(const std::string& path) : file_(path) {}
  absl::Status Append(const SampleBlock& block) override {
    for (size_t i = 0; i < block.size; ++i) {
      file_ << "sample " << block.label[i] << ' ' << block.sparse[0].keys[i] << '\n';
    }
    return absl::OkStatus();
  }
  absl::Status Close() override {
    file_.close();
    return absl::OkStatus();
  }
  std::string source() const override { return "samples.lines"; }

 private:
  std::ofstream file_;
};

constexpr DataFormatEntry kLines = {
    static_cast<DataFormat>(77), "Lines", /*key_lists=*/false,
    [](const DataSetOptions&,
       const std::vector<std::string>& paths) -> absl::StatusOr<std::unique_ptr<SampleReader>> {
      return std::make_unique<LinesReader>(paths[0]);
    },
    [](FileSystem&, const std::string& folder, const DataSetOptions&,
       uint64_t) -> absl::StatusOr<std::unique_ptr<SampleSetWriter>> {
      return std::make_unique<LineWriter>(folder + "/samples.lines");
    }};

TEST(DataFormats, AreFoundByNameIgnoringCase) {
  EXPECT_EQ(FormatOfName("parquet").value(), DataFormat::kParquet);
  EXPECT_STREQ(FormatName(DataFormat::kTar), "Tar");
  EXPECT_TRUE(HoldsKeyLists(DataFormat::kNorm));
  EXPECT_FALSE(HoldsKeyLists(DataFormat::kRaw));
  EXPECT_THAT(std::string(FormatOfName("csv").status().message()),
              HasSubstr("use Norm, Raw, Parquet or Tar"));
}

TEST(DataFormats, HaveASectionInTheDocument) {
  std::ifstream file(CISTERN_SOURCE_DIR "/docs/formats.md");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  for (const DataFormatEntry& entry : DataFormats()) {
    EXPECT_THAT(text, testing::ContainsRegex(absl::StrCat("\n## ", entry.name, "[ \n]")))
        << "describe its bytes in docs/formats.md";
  }
}

TEST(DataFormats, ATarSetIsWrittenByPack) {
  LocalFileSystem files;
  DataSetOptions options;
  options.format = DataFormat::kTar;
  EXPECT_EQ(CreateSampleSetWriter(files, testing::TempDir(), options, 1).status().code(),
            absl::StatusCode::kUnimplemented);
}

TEST(DataFormats, OfSomebodyElseAreWrittenAndRead) {
  LocalFileSystem files;
  DataSetOptions options;
  options.own = &kLines;
  options.shape.slot_nums = {1};
  const std::string folder = testing::TempDir();
  SampleBlock block;
  block.Reset(1);
  block.size = 3;
  block.label = {1, 0, 1};
  block.sparse[0].keys = {70, 71, 72};
  block.sparse[0].offsets = {0, 1, 2, 3};
  const auto writer = CreateSampleSetWriter(files, folder, options, 1000).value();
  ASSERT_EQ(writer->Append(block), absl::OkStatus());
  ASSERT_EQ(writer->Close(), absl::OkStatus());

  options.source = folder + "/" + writer->source();
  options.labels = LabelRule::kProbability;
  const std::unique_ptr<SampleReader> reader = OpenDataSet(options).value();
  SampleBlock read;
  read.Reset(1);
  EXPECT_EQ(reader->Read(2, &read).value(), 2u);
  EXPECT_THAT(read.sparse[0].keys, ElementsAre(70, 71));
  EXPECT_EQ(reader->Read(2, &read).value(), 1u);  // appended
  EXPECT_THAT(read.sparse[0].keys, ElementsAre(70, 71, 72));
  EXPECT_EQ(reader->Read(2, &read).value(), 0u);
}

}  // namespace
}  // namespace cistern::data
