#include "worker/data/storage/standard_input.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "test/support/temp_folder.h"

namespace cistern::data {
namespace {

// Standard input is a file for the time of a test.
class StandardInput : public testing::Test {
 protected:
  ~StandardInput() override {
    dup2(before_, STDIN_FILENO);
    close(before_);
  }
  void Give(const std::string& bytes) {
    WriteBytes(folder_ / "input", bytes);
    const int file = open((folder_ / "input").c_str(), O_RDONLY);
    dup2(file, STDIN_FILENO);
    close(file);
  }
  static std::string Rest() {
    std::string all;
    const auto source = OpenStandardInput();
    EXPECT_TRUE(source.ok()) << source.status();
    char bytes[7];
    for (size_t got = 1; got > 0;) {
      got = (*source)->Read(bytes, sizeof(bytes)).value();
      all.append(bytes, got);
    }
    return all;
  }

  const int before_ = dup(STDIN_FILENO);
  TempFolder folder_;
};

TEST_F(StandardInput, GivesTheBytesOfTheFirstLineAgain) {
  const std::string text = "first line\n" + std::string(10000, 'x') + "\nlast";
  Give(text);
  EXPECT_EQ(FirstLineOfStandardInput(1 << 20).value(), "first line");
  EXPECT_EQ(FirstLineOfStandardInput(1 << 20).value(), "first line");  // a second look
  EXPECT_EQ(Rest(), text);
}

TEST_F(StandardInput, LooksAtNoMoreThanItMay) {
  const std::string line(9000, 'x');
  Give(line);
  EXPECT_EQ(FirstLineOfStandardInput(5000).value(), line.substr(0, 5000));
  EXPECT_EQ(Rest(), line);
}

TEST_F(StandardInput, MayBeEmpty) {
  Give("");
  EXPECT_EQ(FirstLineOfStandardInput(10).value(), "");
  EXPECT_EQ(Rest(), "");
}

}  // namespace
}  // namespace cistern::data
