#include "common/manual/manual.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "common/manual/completion.h"
#include "common/manual/manual_files.h"
#include "common/manual/manual_page.h"

namespace cistern {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// A program with two commands; one holds every kind of flag.
class Program {
 public:
  Program() {
    CLI::App* train = app_.add_subcommand("train", "Trains it's model. Slowly.");
    train->add_option("--out", text_, "Folder of the run.\nrequired; example: --out a")
        ->option_text("DIR")
        ->required();
    train->add_option("-m,--mode", text_, "How.\ndefault: a-b")->option_text("a-b|c");
    train->add_option("--set", list_, ".starts with a dot")->option_text("PATH=VALUE");
    train->add_option("MODEL", text_, "The model file.")->option_text("FILE")->required();
    train->add_flag("--json", on_, "Prints [one] object: done.");
    app_.add_subcommand("data", "Data.")->add_subcommand("pack", "Packs.");
  }
  CommandManual manual() const { return ManualOf(app_); }
  const CLI::App& app() const { return app_; }

 private:
  CLI::App app_{"A program.", "prog"};
  std::string text_;
  std::vector<std::string> list_;
  bool on_ = false;
};

const FlagManual& Flag(const CommandManual& command, const std::string& name) {
  for (const FlagManual& flag : command.flags) {
    if (flag.names.back() == name) return flag;
  }
  ADD_FAILURE() << "no flag " << name;
  return command.flags[0];
}

TEST(Manual, DescribesCommandsFlagsAndArguments) {
  const CommandManual manual = Program().manual();
  ASSERT_EQ(manual.commands.size(), 2);
  const CommandManual& train = manual.commands[0];
  EXPECT_EQ(train.name, "prog train");
  EXPECT_EQ(manual.commands[1].commands[0].name, "prog data pack");
  EXPECT_EQ(Flag(train, "--out").kind, ValueKind::kFolder);
  EXPECT_EQ(Flag(train, "--out").note, "required; example: --out a");
  EXPECT_THAT(Flag(train, "--mode").names, ElementsAre("-m", "--mode"));
  EXPECT_THAT(Flag(train, "--mode").words, ElementsAre("a-b", "c"));
  EXPECT_EQ(Flag(train, "--set").kind, ValueKind::kNone);
  EXPECT_TRUE(Flag(train, "--set").repeats);
  EXPECT_FALSE(Flag(train, "--json").takes_value);
  ASSERT_EQ(train.arguments.size(), 1);
  EXPECT_EQ(train.arguments[0].kind, ValueKind::kFile);
}

TEST(ManualPage, EscapesWhatGroffWouldRead) {
  const std::string page = ManualPage(Program().manual().commands[0], "prog 1");
  EXPECT_THAT(page, HasSubstr(".TH PROG-TRAIN 1 \"\" \"prog 1\""));
  EXPECT_THAT(page, HasSubstr("prog\\-train \\- Trains it's model\n"));
  EXPECT_THAT(page, HasSubstr("\\fB\\-\\-out\\fR \\fIDIR\\fR\nFolder of the run.\n.br\nrequired"));
  EXPECT_THAT(page, HasSubstr("\n\\&.starts with a dot"));
  EXPECT_THAT(page, HasSubstr("[\\fIflags\\fR] \\fIMODEL\\fR"));
}

// What bash offers for a line whose words are given, the last one being completed.
std::string InBash(const std::string& words) {
  std::string script = testing::TempDir() + "/completion.bash";
  const std::string out = testing::TempDir() + "/completion.txt";
  std::ofstream(script)
      << "exec >" << out << " 2>&1\n"
      << BashCompletion(Program().manual())
      << "try() { COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); _prog; echo \"${COMPREPLY[*]}\"; }\n"
      << "try " << words << "\n";
  std::string bash = "bash";
  char* const arguments[] = {bash.data(), script.data(), nullptr};
  pid_t child = 0;
  int ended = -1;
  EXPECT_EQ(posix_spawnp(&child, "bash", nullptr, nullptr, arguments, environ), 0);
  EXPECT_EQ(waitpid(child, &ended, 0), child);
  EXPECT_EQ(ended, 0);
  std::string line;
  std::ifstream result(out);
  std::getline(result, line);
  return line;
}

TEST(BashCompletion, KnowsWhereItIs) {
  EXPECT_EQ(InBash("prog ''"), "train data");
  EXPECT_EQ(InBash("prog data p"), "pack");
  EXPECT_EQ(InBash("prog train --o"), "--out");
  EXPECT_EQ(InBash("prog train --mode ''"), "a-b c");
  EXPECT_EQ(InBash("prog train --mode = a"), "a-b");
  EXPECT_EQ(InBash("prog train --mode=c"), "c");
  EXPECT_EQ(InBash("prog train --set data --j"), "--json");  // a value is not a command
}

TEST(ZshCompletion, EscapesDescriptions) {
  const std::string text = ZshCompletion(Program().manual());
  EXPECT_THAT(text, HasSubstr("#compdef prog\n"));
  EXPECT_THAT(text, HasSubstr("'train:Trains it'\\''s model'"));
  EXPECT_THAT(text, HasSubstr("'--json[Prints \\[one\\] object\\: done]'"));
  EXPECT_THAT(text, HasSubstr("'--mode=[How]:a-b|c:(a-b c)'"));
  EXPECT_THAT(text, HasSubstr("'--out=[Folder of the run]:DIR:_files -/'"));
}

TEST(FishCompletion, HasOneLineForEachWord) {
  const std::string text = FishCompletion(Program().manual());
  EXPECT_THAT(text,
              HasSubstr("-n \"__prog_at 'prog train'\" -s m -l mode -x -a 'a-b c' -d 'How'\n"));
  EXPECT_THAT(text, HasSubstr("-n \"__prog_at 'prog data'\" -a pack -d 'Packs'\n"));
  EXPECT_THAT(text,
              HasSubstr("contains -- \"$at $word\" 'prog train' 'prog data' 'prog data pack'\n"));
  EXPECT_THAT(text, Not(HasSubstr("NAME_at")));
}

TEST(ManualFiles, AreWrittenForManualDirOnly) {
  LocalFileSystem files;
  const Program program;
  const char* other[] = {"prog", "train", "--manual"};
  EXPECT_FALSE(WriteManual(program.app(), "prog 1", 3, other, files).has_value());
  const std::string folder = testing::TempDir() + "/share";
  const char* words[] = {"prog", "--manual", folder.c_str()};
  const auto written = WriteManual(program.app(), "prog 1", 3, words, files);
  ASSERT_TRUE(written.has_value() && written->ok());
  for (const char* path : {"man/man1/prog-data-pack.1", "bash-completion/completions/prog",
                           "zsh/site-functions/_prog", "fish/vendor_completions.d/prog.fish"}) {
    EXPECT_TRUE(std::ifstream(absl::StrCat(folder, "/", path)).good()) << path;
  }
}

}  // namespace
}  // namespace cistern
