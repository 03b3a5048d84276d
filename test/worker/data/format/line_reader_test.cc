#include "worker/data/format/line_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "test/worker/data/scratch.h"

namespace cistern::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class LineReaderTest : public testing::Test {
 protected:
  std::unique_ptr<LineReader> Open(const std::string& text) {
    absl::StatusOr<std::unique_ptr<LineReader>> reader =
        LineReader::Open(scratch_.Write("in.txt", text));
    EXPECT_TRUE(reader.ok()) << reader.status();
    return *std::move(reader);
  }
  std::vector<std::string> Lines(const std::string& text) {
    const std::unique_ptr<LineReader> reader = Open(text);
    std::vector<std::string> lines;
    absl::string_view line;
    while (*reader->Next(&line)) lines.emplace_back(line);
    return lines;
  }

  const Scratch scratch_;
};

TEST_F(LineReaderTest, ReadsLinesWithoutTheirEnds) {
  EXPECT_THAT(Lines("a\nb\r\n\nc"), ElementsAre("a", "b", "", "c"));
  EXPECT_THAT(Lines("a\n"), ElementsAre("a"));
  EXPECT_THAT(Lines(""), IsEmpty());
}

TEST_F(LineReaderTest, DropsAByteOrderMarkOfTheFirstLine) {
  EXPECT_THAT(Lines("\xEF\xBB\xBF"
                    "a\n\xEF\xBB\xBF"
                    "b\n"),
              ElementsAre("a",
                          "\xEF\xBB\xBF"
                          "b"));
}

TEST_F(LineReaderTest, ExtendsALineByTheNext) {
  const std::unique_ptr<LineReader> reader = Open("a\n\"b\nc\"\nd\n");
  absl::string_view line;
  ASSERT_TRUE(*reader->Next(&line));
  ASSERT_TRUE(*reader->Next(&line));
  ASSERT_TRUE(*reader->Extend(&line));
  EXPECT_EQ(line, "\"b\nc\"");
  EXPECT_EQ(reader->line(), 2u);
  ASSERT_TRUE(*reader->Next(&line));
  EXPECT_EQ(reader->line(), 4u);
  EXPECT_FALSE(*reader->Extend(&line));
  EXPECT_THAT(std::string(reader->DataLoss("it is bad").message()),
              testing::EndsWith("in.txt: line 4: it is bad"));
}

TEST_F(LineReaderTest, RefusesAZeroByteAndALineThatIsTooLong) {
  const std::string first(600, 'a');  // longer than what decides whether the file is text
  const std::unique_ptr<LineReader> zero = Open(first + "\nb" + std::string(1, '\0') + "c\n");
  absl::string_view line;
  ASSERT_TRUE(*zero->Next(&line));
  EXPECT_THAT(std::string(zero->Next(&line).status().message()),
              HasSubstr("line 2: holds a zero byte"));
  const std::unique_ptr<LineReader> endless = Open(std::string(LineReader::kMaxLineBytes + 1, 'a'));
  EXPECT_THAT(std::string(endless->Next(&line).status().message()),
              HasSubstr("line 1: is longer than 16 MiB"));
}

}  // namespace
}  // namespace cistern::data
