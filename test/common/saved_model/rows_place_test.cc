#include "common/saved_model/rows_place.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "test/support/temp_folder.h"

namespace cistern {
namespace {

TEST(RowsPlace, DigitsAfterTheLastAtAreACommit) {
  const RowsPlace place = ParseRowsPlace("runs/a/state@12");
  EXPECT_EQ(place.path, "runs/a/state");
  EXPECT_EQ(place.commit, 12u);
  EXPECT_EQ(ParseRowsPlace("/home/bob@corp.com/run@3").path, "/home/bob@corp.com/run");
  EXPECT_EQ(ParseRowsPlace("run@1@2").path, "run@1");
}

TEST(RowsPlace, EverythingElseIsAPath) {
  for (const char* text :
       {"run", "bob@corp.com/run", "bob@7/run", "run@", "run@new", "run@12x", "run@-1", "run@+1",
        "run@0", "run@99999999999999999999", "@12", "runs/@12", "run@12/", "s3://user@b/run"}) {
    EXPECT_EQ(ParseRowsPlace(text).path, text);
    EXPECT_EQ(ParseRowsPlace(text).commit, 0u) << text;
  }
}

TEST(RowsPlace, AFolderOfTheWholeNameComesFirst) {
  TempFolder folder;
  std::filesystem::create_directory(folder / "bob@12");
  EXPECT_EQ(ParseRowsPlace(folder / "bob@12").path, folder / "bob@12");
  EXPECT_EQ(ParseRowsPlace(folder / "bob@12").commit, 0u);
  EXPECT_EQ(ParseRowsPlace(folder / "bob@12@3").path, folder / "bob@12");
  EXPECT_EQ(ParseRowsPlace(folder / "bob@13").commit, 13u);
}

}  // namespace
}  // namespace cistern
