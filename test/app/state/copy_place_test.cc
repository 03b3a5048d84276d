#include "app/state/copy_place.h"

#include <gtest/gtest.h>

#include "test/app/state/copied_states.h"

namespace cistern::app {
namespace {

TEST(CopyPlaceTest, FilesAppearWhole) {
  TempFolder folder;
  LocalFileSystem files;
  const auto place = CopyPlace::At(files, folder / "copy");
  EXPECT_EQ(place->PathOf("data/a"), folder / "copy/state/data/a");
  EXPECT_TRUE(place->List("data")->empty());
  WriteBytes(folder / "local", std::string(10000, 'x'));
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(place->Put(folder / "local", "data/a", "0"), absl::OkStatus());
  }
  WriteBytes(folder / "copy/state/data/b.unfinished-0", "half");
  EXPECT_EQ(*place->List("data"), (std::map<std::string, uint64_t>{{"a", 10000}}));
  EXPECT_EQ(place->Get("data/a", folder / "back"), absl::OkStatus());
  EXPECT_EQ(ReadBytes(folder / "back"), ReadBytes(folder / "local"));
  EXPECT_TRUE(absl::IsNotFound(place->Get("data/c", folder / "c")));
  EXPECT_EQ(place->Remove("data/a"), absl::OkStatus());
  EXPECT_EQ(place->Remove("data/a"), absl::OkStatus());
  EXPECT_TRUE(place->List("data")->empty());
}

}  // namespace
}  // namespace cistern::app
