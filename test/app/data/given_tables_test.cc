#include "app/data/given_tables.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "test/app/data/text_fixture.h"

namespace cistern::app {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class GivenTablesTest : public TextFixture {
 protected:
  std::vector<std::string> NotesOf(const std::vector<std::string>& tables) const {
    std::vector<std::string> notes;
    JobCalls calls;
    calls.note = [&](const std::string& note) { notes.push_back(note); };
    EXPECT_EQ(NoteRepeatedTables(folder_.path(), tables, calls), absl::OkStatus());
    return notes;
  }
};

TEST_F(GivenTablesTest, ADayThatIsGivenTwiceIsNoted) {
  const std::string first = Write("day1", 50), second = Write("day2", 60);
  ASSERT_EQ(ListFirstTable(folder_.path(), first, {}), absl::OkStatus());
  EXPECT_THAT(NotesOf({first}), ElementsAre(AllOf(HasSubstr(first), HasSubstr("count twice"))));
  EXPECT_THAT(NotesOf({second}), IsEmpty());
  EXPECT_THAT(NotesOf({first}), ElementsAre(HasSubstr(first)));
  // Under another name, in a folder, and beside a new one.
  std::filesystem::create_directory(In("more"));
  std::filesystem::copy_file(second, In("more/copy.csv"));
  WriteText("more/new.csv", "click,user,price\n1,u1,2\n");
  EXPECT_THAT(NotesOf({In("more")}), ElementsAre(AllOf(HasSubstr("copy.csv"), HasSubstr(second))));
  EXPECT_THAT(NotesOf({In("more/new.csv")}), ElementsAre(HasSubstr("new.csv")));
  // Another last byte is another day.
  EXPECT_THAT(NotesOf({WriteText("day3.csv", "click,user,price\n1,u1,3\n")}), IsEmpty());
}

TEST_F(GivenTablesTest, ACommandMayBeRepeatedAtOnce) {
  ASSERT_EQ(ListFirstTable(folder_.path(), Write("day1", 50), {}), absl::OkStatus());
  const std::vector<std::string> days = {Write("day2", 60), Write("day3", 70)};
  for (int i = 0; i < 3; ++i) EXPECT_THAT(NotesOf(days), IsEmpty());
  EXPECT_THAT(NotesOf({days[1]}), ElementsAre(HasSubstr("day3.csv")));
}

TEST_F(GivenTablesTest, TwoFilesOfOneCommandMayBeEqual) {
  const std::string one = Write("a", 20), other = Write("b", 20);
  EXPECT_THAT(NotesOf({one + "," + other}), ElementsAre(AllOf(HasSubstr(one), HasSubstr(other))));
}

TEST_F(GivenTablesTest, ANewRunBeginsItsList) {
  const std::string day = Write("day1", 50);
  EXPECT_THAT(NotesOf({day}), IsEmpty());
  ASSERT_EQ(ListFirstTable(folder_.path(), Write("other", 40), {}), absl::OkStatus());
  EXPECT_THAT(NotesOf({day}), IsEmpty());
}

}  // namespace
}  // namespace cistern::app
