#include "app/diagnose/bundle.h"

#include <gtest/gtest.h>

#include <set>

#include "common/io/file_system.h"
#include "test/support/temp_folder.h"

namespace cistern::app {
namespace {

class BundleTest : public ::testing::Test {
 protected:
  BundleTest() { options_.out = folder_.path() + "/out"; }
  void Write(const std::string& name, const std::string& text) {
    auto file = files_.Create(folder_.path() + "/" + name);
    ASSERT_TRUE(file.ok() && (*file)->Append(text).ok() && (*file)->Close().ok());
  }
  std::string Read(const std::string& name) {
    const auto text = ReadWhole(files_, options_.out + "/" + name, 1 << 22);
    return text.ok() ? *text : text.status().ToString();
  }
  std::set<std::string> NamesOf(const Bundle& bundle) {
    std::set<std::string> names;
    for (const Bundle::File& file : bundle.files) {
      if (!absl::StartsWith(file.name, "processes/")) names.insert(file.name);
    }
    return names;
  }

  TempFolder folder_;
  LocalFileSystem files_;
  BundleOptions options_;
};

TEST_F(BundleTest, HoldsTheEndOfALogFromTheStartOfALine) {
  Write("a.log", "first\n" + std::string(1 << 20, 'x') + "\nlast, password=hunter2\n");
  options_.logs = {folder_.path() + "/a.log"};
  options_.texts = {{"note.txt", "token: abc"}};
  const absl::StatusOr<Bundle> bundle = CollectBundle(options_);
  ASSERT_TRUE(bundle.ok()) << bundle.status();
  EXPECT_EQ(Read("note.txt"), "token: [removed]");
  std::set<std::string> names = NamesOf(*bundle);
  EXPECT_EQ(names.erase("README.txt") + names.erase("note.txt"), 2u);
  ASSERT_EQ(names.size(), 1u);
  EXPECT_EQ(Read(*names.begin()), "last, password=[removed]\n");
}

TEST_F(BundleTest, SaysWhatItCouldNotCollect) {
  ASSERT_TRUE(files_.MakeFolders(folder_.path() + "/empty").ok());
  Write("no_line.log", std::string((1 << 20) + 5, 'x'));
  options_.logs = {folder_.path() + "/none.log", folder_.path(), folder_.path() + "/no_line.log"};
  options_.runs = {folder_.path() + "/empty", folder_.path() + "/away"};
  options_.metrics = {"nonsense", folder_.path() + "/none.sock"};
  options_.servers = "no address";
  const absl::StatusOr<Bundle> bundle = CollectBundle(options_);
  ASSERT_TRUE(bundle.ok()) << bundle.status();
  EXPECT_EQ(bundle->left_out.size(), 7u);
  const std::string readme = Read("README.txt");
  for (const std::string& line : bundle->left_out) {
    EXPECT_NE(readme.find(line), std::string::npos) << line;
  }
}

TEST_F(BundleTest, ReplacesNothing) {
  options_.out = folder_.path();
  absl::Status refused = CollectBundle(options_).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(OptionsOf(refused), std::vector<std::string>{"out"});
  options_.out = "";
  EXPECT_EQ(CollectBundle(options_).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace cistern::app
