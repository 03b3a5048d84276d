#include "worker/data/storage/path_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "test/support/temp_folder.h"

namespace cistern::data {
namespace {

using testing::ElementsAre;
namespace fs = std::filesystem;

class PathList : public testing::Test {
 protected:
  std::string Make(const std::string& name) {
    fs::create_directories(fs::path(folder_ / name).parent_path());
    WriteBytes(folder_ / name, "1");
    return folder_ / name;
  }
  TempFolder folder_;
};

TEST_F(PathList, CommasSeparate) {
  const std::string a = Make("a.csv"), b = Make("b.csv");
  EXPECT_THAT(SplitPaths(a), ElementsAre(a));
  EXPECT_THAT(SplitPaths(a + "," + b), ElementsAre(a, b));
  EXPECT_THAT(SplitPaths("no,such,file"), ElementsAre("no", "such", "file"));
  EXPECT_THAT(SplitPaths(a + ",," + b), ElementsAre(a, "", b));
  EXPECT_THAT(SplitPaths(a + ", " + b), ElementsAre(a, " " + b));
  EXPECT_THAT(SplitPaths("-," + a), ElementsAre("-", a));
}

TEST_F(PathList, APathThatExistsIsNotSplit) {
  const std::string a = Make("lr=0.1,dim=8/a.csv"), b = Make("lr=0.1,dim=9,x/b,c.csv");
  EXPECT_THAT(SplitPaths(a), ElementsAre(a));
  EXPECT_THAT(SplitPaths("file://" + a), ElementsAre("file://" + a));
  EXPECT_THAT(SplitPaths(a + "," + b), ElementsAre(a, b));
  const std::string folder = folder_ / "lr=0.1,dim=8";
  EXPECT_THAT(SplitPaths(folder + "," + folder), ElementsAre(folder, folder));
  const std::string plain = Make("plain.csv");
  EXPECT_THAT(SplitPaths(plain + "," + a + "," + plain), ElementsAre(plain, a, plain));
  fs::create_symlink("nowhere", folder_ / "link,2");
  EXPECT_THAT(SplitPaths(folder_ / "link,2"), ElementsAre(folder_ / "link,2"));
}

// A folder "lr=0.1" beside "lr=0.1,dim=8".
TEST_F(PathList, AFolderWithTheBeginningOfTheNameDoesNotMisleadIt) {
  const std::string a = Make("lr=0.1,dim=8/a.csv"), b = Make("lr=0.1/b.csv");
  EXPECT_THAT(SplitPaths(a + "," + b), ElementsAre(a, b));
  EXPECT_THAT(SplitPaths(b + "," + a), ElementsAre(b, a));
  const std::string folder = folder_ / "lr=0.1";
  EXPECT_THAT(SplitPaths(folder + "," + b), ElementsAre(folder, b));
}

TEST_F(PathList, CommasInBracesAndBetweenRemotePathsAreWhatTheyWere) {
  EXPECT_THAT(SplitPaths("part-{1,2}.csv"), ElementsAre("part-{1,2}.csv"));
  EXPECT_THAT(SplitPaths("{a,b}/x,c"), ElementsAre("{a,b}/x", "c"));
  EXPECT_THAT(SplitPaths("s3://b/x.csv,s3://b/y.csv,/data/z.csv"),
              ElementsAre("s3://b/x.csv", "s3://b/y.csv", "/data/z.csv"));
}

}  // namespace
}  // namespace cistern::data
