// xbox exports on a failing disk and after a loss of power: a version that a donefile names is
// complete, and the next export succeeds.
#include <gmock/gmock.h>
#include <xxhash.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_split.h"
#include "test/support/fault_file_system.h"
#include "test/support/memory_file_system.h"
#include "test/worker/export/xbox/ctr_fleet.h"
#include "test/worker/export/xbox/sequence_reader.h"
#include "worker/export/export_manifest.h"
#include "worker/export/xbox/xbox_model.h"

namespace cistern {
namespace {

XboxOptions Options(v1::SaveMode mode) {
  return {.folder = "/out", .mode = mode, .files = 2, .now = 1000, .tables = {0}};
}

// Checks a version, given its folder base or patch, against its manifest.
void CheckVersion(FileSystem& files, const std::string& input) {
  const std::string folder = ParentFolder(input);
  const auto text = ReadWhole(files, folder + "/xbox.json", 1 << 20);
  ASSERT_TRUE(text.ok()) << text.status();
  const auto manifest = nlohmann::json::parse(*text);
  ASSERT_EQ(manifest["files"].size(), 2u);
  for (const auto& file : manifest["files"]) {
    const auto bytes =
        ReadWhole(files, absl::StrCat(folder, "/", file["name"].get<std::string>()), 1 << 20);
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    EXPECT_EQ(bytes->size(), file["bytes"]);
    EXPECT_EQ(HashText(XXH3_64bits(bytes->data(), bytes->size())), file["xxh3"].get<std::string>());
  }
}

// Checks every version that the donefiles name; returns their number.
size_t CheckAll(FileSystem& files) {
  size_t versions = 0;
  for (const char* name : {"base", "patch"}) {
    const auto text = ReadWhole(files, absl::StrCat("/out/donefile/", name, ".txt"), 1 << 20);
    if (!text.ok()) continue;
    for (const absl::string_view line : absl::StrSplit(*text, '\n', absl::SkipEmpty())) {
      CheckVersion(files, nlohmann::json::parse(line)["input"].get<std::string>());
      ++versions;
    }
  }
  return versions;
}

bool HasFresh(FileSystem& files) {
  const auto names = files.List("/out");
  return names.ok() && std::any_of(names->begin(), names->end(),
                                   [](const std::string& name) { return name.ends_with(".new"); });
}

class XboxDisk : public testing::Test {
 protected:
  XboxDisk() : fleet_(7) {
    fleet_.Train(100);
    EXPECT_TRUE(WriteXbox(disk_, *fleet_.model(), Options(v1::BASE)).ok());
  }
  std::unique_ptr<MemoryFileSystem> Copy(size_t prefix, MemoryFileSystem::Loss loss) {
    return disk_.Crash(prefix, loss, prefix);
  }

  CtrFleet fleet_;
  MemoryFileSystem disk_;
};

TEST_F(XboxDisk, AnyFailedCallLeavesWholeVersionsAndTheNextExportSucceeds) {
  for (const Fault fault : {Fault::kNoSpace, Fault::kLostReply}) {
    uint64_t n = 1;
    for (;; ++n) {
      const auto memory = Copy(disk_.operation_num(), MemoryFileSystem::Loss::kKill);
      FaultFileSystem files(memory.get());
      files.FailCall(n, fault);
      const absl::Status written = WriteXbox(files, *fleet_.model(), Options(v1::DELTA)).status();
      if (files.hits().empty()) break;
      EXPECT_GE(CheckAll(*memory), written.ok() ? 2u : 1u) << files.hits()[0];
      ASSERT_TRUE(WriteXbox(*memory, *fleet_.model(), Options(v1::DELTA)).ok()) << files.hits()[0];
      EXPECT_GE(CheckAll(*memory), 2u);
      EXPECT_FALSE(HasFresh(*memory)) << files.hits()[0];
    }
    EXPECT_GT(n, 30u);
  }
}

TEST_F(XboxDisk, AVersionThatADonefileNamesSurvivesALossOfPower) {
  const size_t before = disk_.operation_num();
  ASSERT_TRUE(WriteXbox(disk_, *fleet_.model(), Options(v1::DELTA)).ok());
  size_t announced = 0;
  for (size_t prefix = before; prefix <= disk_.operation_num(); ++prefix) {
    for (const auto loss : {MemoryFileSystem::Loss::kKill, MemoryFileSystem::Loss::kOrdered,
                            MemoryFileSystem::Loss::kWeak}) {
      const auto memory = Copy(prefix, loss);
      const size_t versions = CheckAll(*memory);
      EXPECT_GE(versions, prefix == disk_.operation_num() ? 2u : 1u);
      announced += versions == 2 ? 1 : 0;
      ASSERT_TRUE(WriteXbox(*memory, *fleet_.model(), Options(v1::DELTA)).ok());
      EXPECT_FALSE(HasFresh(*memory));
      EXPECT_EQ(CheckAll(*memory), versions + 1);
    }
  }
  EXPECT_GT(announced, 0u);
}

// The last line of the donefile of a table, as a reader finds it who follows the links.
std::string LastIdOf(FileSystem& files, const std::string& table, const std::string& kind) {
  const std::string path = absl::StrCat("/out/", table, "/donefile/", kind, ".txt");
  std::string at = path;
  const auto link = files.ReadLink(path);
  if (link.ok()) {
    EXPECT_EQ(*link, absl::StrCat("../../.donefiles/", table, "/", kind, ".txt"));
    at = absl::StrCat("/out/.donefiles/", table, "/", kind, ".txt");
  }
  const auto text = ReadWhole(files, at, 1 << 20);
  if (!text.ok()) return "none";
  const std::vector<std::string> lines = absl::StrSplit(*text, '\n', absl::SkipEmpty());
  const auto line = nlohmann::json::parse(lines.back());
  CheckVersion(files, line["input"].get<std::string>());
  return line["id"].get<std::string>();
}

class XboxDiskOfSeveralTables : public testing::Test {
 protected:
  XboxDiskOfSeveralTables() : fleet_(7, 1, /*empty_table=*/true) {
    fleet_.Train(100);
    EXPECT_TRUE(WriteXbox(disk_, *fleet_.model(), BothTables(v1::BASE)).ok());
    EXPECT_EQ(IdOfAll(disk_, "base"), "1000");
  }
  static XboxOptions BothTables(v1::SaveMode mode) {
    XboxOptions options = Options(mode);
    options.tables = {0, 1};
    return options;
  }
  // The last version of all tables, which must agree.
  static std::string IdOfAll(FileSystem& files, const std::string& kind) {
    const std::string id = LastIdOf(files, "ctr", kind);
    EXPECT_EQ(LastIdOf(files, "empty", kind), id);
    return id;
  }
  // What every disk must satisfy after a failure of the export that follows the base.
  void CheckAndExportAgain(MemoryFileSystem& disk, bool written) {
    EXPECT_EQ(IdOfAll(disk, "base"), "1000");
    const std::string id = IdOfAll(disk, "patch");
    EXPECT_THAT(id, testing::AnyOf(written ? "1001" : "none", "1001"));
    const auto again = WriteXbox(disk, *fleet_.model(), BothTables(v1::DELTA));
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(IdOfAll(disk, "patch"), std::to_string(again->id));
    EXPECT_FALSE(HasFresh(disk));
  }

  CtrFleet fleet_;
  MemoryFileSystem disk_;
};

TEST_F(XboxDiskOfSeveralTables, AnyFailedCallAnnouncesAllTablesOrNone) {
  for (const Fault fault : {Fault::kNoSpace, Fault::kLostReply}) {
    uint64_t n = 1;
    for (;; ++n) {
      const auto memory =
          disk_.Crash(disk_.operation_num(), MemoryFileSystem::Loss::kKill, /*seed=*/n);
      FaultFileSystem files(memory.get());
      files.FailCall(n, fault);
      const auto written = WriteXbox(files, *fleet_.model(), BothTables(v1::DELTA));
      if (files.hits().empty()) break;
      SCOPED_TRACE(files.hits()[0]);
      CheckAndExportAgain(*memory, written.ok());
    }
    EXPECT_GT(n, 60u);
  }
}

TEST_F(XboxDiskOfSeveralTables, ALossOfPowerLeavesAllTablesOrNone) {
  const size_t before = disk_.operation_num();
  ASSERT_TRUE(WriteXbox(disk_, *fleet_.model(), BothTables(v1::DELTA)).ok());
  size_t announced = 0;
  for (size_t prefix = before; prefix <= disk_.operation_num(); ++prefix) {
    for (const auto loss : {MemoryFileSystem::Loss::kKill, MemoryFileSystem::Loss::kOrdered,
                            MemoryFileSystem::Loss::kWeak}) {
      const auto memory = disk_.Crash(prefix, loss, prefix);
      SCOPED_TRACE(prefix);
      announced += LastIdOf(*memory, "ctr", "patch") == "1001" ? 1 : 0;
      CheckAndExportAgain(*memory, prefix == disk_.operation_num());
    }
  }
  EXPECT_GT(announced, 0u);
}

}  // namespace
}  // namespace cistern
