// The donefiles of several dictionaries, on the file system of this machine, as a reader finds
// them.
#include "worker/export/xbox/donefile_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "test/support/temp_folder.h"
#include "test/worker/export/xbox/last_done.h"

namespace cistern {
namespace {

using Kind = DonefileSet::Kind;
namespace fs = std::filesystem;

class DonefileSetTest : public testing::Test {
 protected:
  DonefileSet Opened(std::vector<std::string> tables = {"deep", "wide"}) {
    EXPECT_TRUE(files_.MakeFolders(folder_.path()).ok());
    DonefileSet set(files_, folder_.path(), std::move(tables));
    const absl::Status opened = set.Open();
    EXPECT_TRUE(opened.ok()) << opened;
    return set;
  }
  void Announce(uint64_t id, Kind kind = Kind::kBase,
                const std::vector<std::string>& tables = {"deep", "wide"}) {
    std::map<std::string, DoneLine> lines;
    for (const std::string& table : tables) lines[table] = {id, id, absl::StrCat("/", table)};
    const absl::Status done = Opened(tables).Announce(id, kind, lines);
    ASSERT_TRUE(done.ok()) << done;
  }
  // Through the links.
  std::string Read(const std::string& name) const {
    std::ifstream in(folder_ / name);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
  }
  void Write(const std::string& name, const std::string& text) const {
    fs::create_directories(fs::path(folder_ / name).parent_path());
    std::ofstream(folder_ / name) << text;
  }
  static std::string Line(uint64_t id, const std::string& table) {
    return absl::StrCat("{\"id\":\"", id, "\",\"key\":\"", id, "\",\"input\":\"/", table, "\"}\n");
  }
  // The folders of sets, of which a few may stay.
  size_t SetNum() const {
    size_t sets = 0;
    for (const auto& entry : fs::directory_iterator(folder_.path())) {
      sets += entry.path().filename().string().rfind(".donefiles-", 0) == 0 ? 1 : 0;
    }
    return sets;
  }

  TempFolder folder_;
  LocalFileSystem files_;
};

TEST_F(DonefileSetTest, ReadersFindTheLinesOfEachTable) {
  Announce(1);
  Announce(2);
  EXPECT_EQ(Read("deep/donefile/base.txt"), Line(1, "deep") + Line(2, "deep"));
  EXPECT_EQ(Read("wide/donefile/base.txt"), Line(1, "wide") + Line(2, "wide"));
  EXPECT_FALSE(fs::exists(folder_ / "deep/donefile/patch.txt"));
  Announce(3, Kind::kPatch);
  EXPECT_EQ(Read("wide/donefile/patch.txt"), Line(3, "wide"));
  const DonefileSet set = Opened();
  EXPECT_EQ(LastDone(files_, set.PathOf("wide", Kind::kBase)).value()->id, 2u);
  EXPECT_EQ(set.Last("deep", Kind::kBase).value()->id, 2u);
  EXPECT_EQ(set.Last("deep", Kind::kPatch).value()->id, 3u);
  EXPECT_EQ(SetNum(), 1u);
}

TEST_F(DonefileSetTest, OneRenameAnnouncesAllTables) {
  Announce(1);
  const std::string before = fs::read_symlink(folder_ / ".donefiles");
  const auto inode = [&](const std::string& name) {
    return fs::read_symlink(folder_ / name).string();
  };
  const std::string deep = inode("deep/donefile/base.txt"), wide = inode("wide/donefile/base.txt");
  Announce(2);
  EXPECT_EQ(inode("deep/donefile/base.txt"), deep);
  EXPECT_EQ(inode("wide/donefile/base.txt"), wide);
  EXPECT_NE(fs::read_symlink(folder_ / ".donefiles").string(), before);
  EXPECT_TRUE(fs::exists(folder_ / before));  // a reader may be on its way there
}

TEST_F(DonefileSetTest, DonefilesOfAnOlderProgramBecomeLinks) {
  Write("deep/donefile/base.txt", Line(1, "deep"));
  Write("deep/donefile/patch.txt", Line(2, "deep"));
  Write("wide/donefile/base.txt", Line(1, "wide"));
  Announce(3);
  EXPECT_EQ(Read("deep/donefile/base.txt"), Line(1, "deep") + Line(3, "deep"));
  EXPECT_EQ(Read("wide/donefile/base.txt"), Line(1, "wide") + Line(3, "wide"));
  EXPECT_EQ(Read("deep/donefile/patch.txt"), Line(2, "deep"));
  for (const char* const name : {"deep/donefile/base.txt", "deep/donefile/patch.txt"}) {
    EXPECT_TRUE(fs::is_symlink(folder_ / name)) << name;
  }
}

TEST_F(DonefileSetTest, AnEditedDonefileCounts) {
  Announce(1);
  Announce(2);
  fs::remove(folder_ / "deep/donefile/base.txt");
  Write("deep/donefile/base.txt", Line(1, "deep"));  // as `sed -i` does
  EXPECT_EQ(Opened().Last("deep", Kind::kBase).value()->id, 1u);
  Announce(3);
  EXPECT_EQ(Read("deep/donefile/base.txt"), Line(1, "deep") + Line(3, "deep"));
  EXPECT_EQ(Read("wide/donefile/base.txt"), Line(1, "wide") + Line(2, "wide") + Line(3, "wide"));
}

TEST_F(DonefileSetTest, ARemovedDictionaryBeginsAgain) {
  Announce(1);
  fs::remove_all(folder_ / "deep");
  EXPECT_FALSE(Opened().Last("deep", Kind::kBase).value().has_value());
  Announce(2);
  EXPECT_EQ(Read("deep/donefile/base.txt"), Line(2, "deep"));
}

TEST_F(DonefileSetTest, TablesOfOtherExportsKeepTheirLines) {
  Announce(1);
  Announce(2, Kind::kBase, {"deep", "other"});
  EXPECT_EQ(Read("wide/donefile/base.txt"), Line(1, "wide"));
  EXPECT_EQ(Read("other/donefile/base.txt"), Line(2, "other"));
}

TEST_F(DonefileSetTest, ACopyThatFollowedLinksCanBeContinued) {
  Announce(1);
  const std::string copy = folder_ / "copy";
  fs::create_directory(copy);
  fs::copy(folder_.path() / fs::path("deep"), fs::path(copy) / "deep", fs::copy_options::recursive);
  fs::copy(folder_.path() / fs::path("wide"), fs::path(copy) / "wide", fs::copy_options::recursive);
  fs::copy(folder_.path() / fs::path(".donefiles"), fs::path(copy) / ".donefiles",
           fs::copy_options::recursive);
  ASSERT_FALSE(fs::is_symlink(fs::path(copy) / ".donefiles"));
  DonefileSet set(files_, copy, {"deep", "wide"});
  const absl::Status opened = set.Open();
  ASSERT_TRUE(opened.ok()) << opened;
  EXPECT_EQ(set.Last("wide", Kind::kBase).value()->id, 1u);
  ASSERT_TRUE(
      set.Announce(2, Kind::kBase, {{"deep", {2, 2, "/deep"}}, {"wide", {2, 2, "/wide"}}}).ok());
  EXPECT_EQ(Read("copy/wide/donefile/base.txt"), Line(1, "wide") + Line(2, "wide"));
}

TEST_F(DonefileSetTest, ADonefileOfOneTableIsAFile) {
  const absl::Status done = Opened({}).Announce(1, Kind::kBase, {{"", {1, 1, "/x"}}});
  ASSERT_TRUE(done.ok()) << done;
  EXPECT_EQ(Read("donefile/base.txt"), Line(1, "x"));
  EXPECT_FALSE(fs::is_symlink(folder_ / "donefile/base.txt"));
  EXPECT_FALSE(fs::exists(folder_ / ".donefiles"));
}

}  // namespace
}  // namespace cistern
