#include "cli/terminal/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/terminal/exit_code.h"
#include "test/support/temp_folder.h"

namespace cistern::cli {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::internal::CaptureStderr;
using testing::internal::CaptureStdout;
using testing::internal::GetCapturedStderr;
using testing::internal::GetCapturedStdout;

// A program with two commands that only record their arguments.
struct Example {
  std::string out = "here";
  std::vector<std::string> set, data;
  uint64_t batch_size = 64;
  bool overwrite = false;
  std::string model;
  std::string stdout_text, stderr_text;

  int Run(std::vector<const char*> words) {
    CommandLine line("prog", "A program.");
    Command& train = line.root().Add("train", "Trains.", "prog train m.json");
    train.Argument("MODEL", &model, {"FILE", "The model.", "m.json", kRequired});
    train.Flag("--out", &out, {"DIR", "Where it goes.", "--out run"});
    train.Flag("--batch-size", &batch_size, {"INT", "Samples a step.", "--batch-size 32"});
    train.Switch("--overwrite", &overwrite, {"", "Replaces.", "--overwrite"});
    train.List("--set", &set, false, {"PATH=VALUE", "Overrides.", "--set a.b=1"});
    train.List("--data", &data, true, {"FILE,...", "Data.", "--data a,b"});
    train.Does([this](Console&) -> absl::StatusOr<Report> {
      Report report;
      report.json["out"] = out;
      report.text = "trained\n";
      return report;
    });
    Command& table = line.root().Add("table", "Tables.", "");
    table.Add("show", "Shows one.", "").Does([](Console&) -> absl::StatusOr<Report> {
      return absl::DataLossError("row 7 is corrupt");
    });
    words.insert(words.begin(), "prog");
    CaptureStdout();
    CaptureStderr();
    const int code = line.Run(static_cast<int>(words.size()), words.data());
    stdout_text = GetCapturedStdout();
    stderr_text = GetCapturedStderr();
    return code;
  }
};

TEST(CommandLine, ReadsBothSpellingsOfAFlag) {
  Example kebab, snake;
  EXPECT_EQ(kebab.Run({"train", "m.json", "--batch-size", "7"}), 0);
  EXPECT_EQ(snake.Run({"train", "--batch_size=7", "m.json"}), 0);
  EXPECT_EQ(kebab.batch_size, 7u);
  EXPECT_EQ(snake.batch_size, 7u);
  EXPECT_EQ(snake.model, "m.json");
}

TEST(CommandLine, ACommandMayHaveBothABodyAndCommands) {
  const auto run = [](std::vector<const char*> words) {
    CommandLine line("prog", "A program.");
    std::string path, log;
    Command& verify = line.root().Add("verify", "Checks.", "");
    verify.Argument("PATH", &path, {"DIR", "What to check.", "saved"});
    verify.Does([&](Console&) { return absl::StatusOr<Report>(Report{{}, "path " + path, {}}); });
    Command& online = verify.Add("online", "Checks a log.", "");
    online.Argument("LOG", &log, {"FILE", "The log.", "log", kRequired});
    online.Does([&](Console&) { return absl::StatusOr<Report>(Report{{}, "log " + log, {}}); });
    words.insert(words.begin(), "prog");
    CaptureStdout();
    CaptureStderr();
    line.Run(static_cast<int>(words.size()), words.data());
    return GetCapturedStdout() + GetCapturedStderr();
  };
  EXPECT_EQ(run({"verify", "saved"}), "path saved");
  EXPECT_EQ(run({"verify", "online", "a.jsonl"}), "log a.jsonl");
  EXPECT_THAT(run({"verify", "online"}), HasSubstr("LOG is required"));
}

TEST(CommandLine, DoesNotChangeValues) {
  EXPECT_THAT(NormalizeFlags({"--a_b=c_d", "e_f", "-g_h", "--", "--i_j"}),
              ElementsAre("--a-b=c_d", "e_f", "-g_h", "--", "--i_j"));
}

TEST(CommandLine, CollectsRepeatedFlags) {
  Example example;
  EXPECT_EQ(example.Run({"train", "--set", "a=[1,2]", "--set=b=2", "--data", "x,y", "--data", "z",
                         "m.json"}),
            0)
      << example.stderr_text;
  EXPECT_THAT(example.set, ElementsAre("a=[1,2]", "b=2"));
  EXPECT_THAT(example.data, ElementsAre("x", "y", "z"));
  EXPECT_EQ(example.model, "m.json");
}

TEST(CommandLine, KeepsThePathThatHasAComma) {
  TempFolder folder;
  const std::string file = folder / "lr=0.1,dim=8.txt", plain = folder / "plain.txt";
  WriteBytes(file, "1");
  WriteBytes(plain, "1");
  Example whole, several, repeated;
  EXPECT_EQ(whole.Run({"train", "m.json", "--data", file.c_str()}), 0);
  EXPECT_THAT(whole.data, ElementsAre(file));
  EXPECT_EQ(several.Run({"train", "m.json", "--data", (plain + "," + file).c_str()}), 0);
  EXPECT_THAT(several.data, ElementsAre(plain, file));
  EXPECT_EQ(repeated.Run({"train", "m.json", "--data", file.c_str(), "--data", plain.c_str()}), 0);
  EXPECT_THAT(repeated.data, ElementsAre(file, plain));
}

TEST(CommandLine, ExplainsAPathThatWasSplit) {
  CommandLine line("prog", "A program.");
  std::vector<std::string> runs;
  Command& report = line.root().Add("report", "Reports.", "");
  report.Arguments("RUN", &runs, {"DIR", "Runs.", "runs/a", kRequired});
  report.Does([&](Console&) -> absl::StatusOr<Report> {
    return WithFix(absl::InvalidArgumentError("cannot open " + runs[0]), "look");
  });
  CaptureStderr();
  const char* const words[] = {"prog", "report", "lr=0.1,dim=8"};
  EXPECT_EQ(line.Run(3, words), 2);
  EXPECT_THAT(GetCapturedStderr(),
              AllOf(HasSubstr("cannot open lr=0.1"),
                    HasSubstr("fix: look; a comma separates paths, so RUN 'lr=0.1,dim=8' named "
                              "'lr=0.1', which does not exist")));
}

TEST(CommandLine, TakesJsonBeforeTheCommand) {
  Example first, within;
  EXPECT_EQ(first.Run({"--json", "train", "m.json"}), 0) << first.stderr_text;
  EXPECT_EQ(first.stdout_text, "{\"out\":\"here\"}\n");
  EXPECT_EQ(within.Run({"table", "--json", "--log-level", "off", "show"}), 4);
  EXPECT_THAT(within.stdout_text, HasSubstr("\"exit_code\":4"));
  Example alone;
  EXPECT_EQ(alone.Run({"--json"}), 2);
  EXPECT_THAT(alone.stderr_text, HasSubstr("name a command: train, table"));
}

TEST(CommandLine, ReportsTextThatJsonCannotHold) {
  CommandLine line("prog", "A program.");
  line.root().Add("go", "Goes.", "").Does([](Console&) -> absl::StatusOr<Report> {
    return Report{{}, nlohmann::json("\xe9").dump(), {}};
  });
  CaptureStderr();
  const char* const words[] = {"prog", "go"};
  EXPECT_EQ(line.Run(2, words), 1);
  EXPECT_THAT(GetCapturedStderr(), HasSubstr("is not UTF-8"));
}

TEST(CommandLine, PrintsTextOrJson) {
  Example text, json;
  EXPECT_EQ(text.Run({"train", "m.json"}), 0);
  EXPECT_EQ(text.stdout_text, "trained\n");
  EXPECT_EQ(json.Run({"train", "m.json", "--json"}), 0);
  EXPECT_EQ(json.stdout_text, "{\"out\":\"here\"}\n");
}

TEST(CommandLine, NamesTheNearestFlag) {
  Example example;
  EXPECT_EQ(example.Run({"train", "m.json", "--uot", "run"}), 2);
  EXPECT_EQ(example.stderr_text,
            "error: prog train: unknown flag '--uot'\n"
            "fix: did you mean '--out'? see prog train --help\n");
  EXPECT_EQ(example.stdout_text, "");
}

TEST(CommandLine, NamesTheFlagForOneOfAnotherProgram) {
  Example example;
  EXPECT_EQ(example.Run({"train", "m.json", "--epochs", "3"}), 2);
  EXPECT_THAT(example.stderr_text, HasSubstr("did you mean '--set solver.num_epochs=N'?"));
}

TEST(CommandLine, SaysWhereAFlagBelongs) {
  Example example;
  EXPECT_EQ(example.Run({"--out", "run", "train", "m.json"}), 2);
  EXPECT_EQ(example.stderr_text,
            "error: prog train: the flag '--out' is written before the command\n"
            "fix: write it after the command: prog train --out ...\n");
}

TEST(CommandLine, HelpIsAlsoACommand) {
  Example word, flag;
  EXPECT_EQ(word.Run({"help", "table", "show"}), 0);
  EXPECT_EQ(flag.Run({"table", "show", "--help"}), 0);
  EXPECT_THAT(word.stdout_text, HasSubstr("prog table show"));
  EXPECT_EQ(word.stdout_text, flag.stdout_text);
}

TEST(CommandLine, ListsTheCommandsIfOneIsMissing) {
  Example none, half, level;
  EXPECT_EQ(none.Run({}), 2);
  EXPECT_THAT(none.stderr_text, HasSubstr("name a command: train, table"));
  EXPECT_EQ(half.Run({"table"}), 2);
  EXPECT_THAT(half.stderr_text, HasSubstr("prog table: name a command: show"));
  EXPECT_EQ(level.Run({"train", "m.json", "--log-level", "loud"}), 2);
}

TEST(CommandLine, NamesTheNearestCommand) {
  Example example;
  EXPECT_EQ(example.Run({"trian", "m.json"}), 2);
  EXPECT_EQ(example.stderr_text,
            "error: prog: unknown command 'trian'\n"
            "fix: did you mean 'train'? see prog --help\n");
  EXPECT_EQ(example.Run({"table", "shwo"}), 2);
  EXPECT_EQ(example.stderr_text,
            "error: prog table: unknown command 'shwo'\n"
            "fix: did you mean 'show'? see prog table --help\n");
}

TEST(CommandLine, BlamesTheUnknownCommandNotItsFlags) {
  Example example;
  EXPECT_EQ(example.Run({"trian", "--batch-size", "7", "m.json"}), 2);
  EXPECT_THAT(example.stderr_text, HasSubstr("unknown command 'trian'"));
  EXPECT_EQ(example.Run({"--bogus", "trian"}), 2);
  EXPECT_THAT(example.stderr_text, HasSubstr("unknown flag '--bogus'"));
}

TEST(CommandLine, SaysThatAFlagWasGivenTwice) {
  Example example;
  EXPECT_EQ(example.Run({"train", "m.json", "--out", "a", "--out", "b"}), 2);
  EXPECT_THAT(example.stderr_text, HasSubstr("--out was given twice"));
}

TEST(CommandLine, AnnouncesAResultBeforeTheEnd) {
  for (const bool json : {false, true}) {
    CommandLine line("prog", "A program.");
    line.root().Add("serve", "Serves.", "").Does([](Console& console) -> absl::StatusOr<Report> {
      Report ready, end;
      ready.text = "ready\n";
      ready.json["ready"] = true;
      console.Announce(ready);
      end.json["ready"] = false;
      return end;
    });
    std::vector<const char*> words = {"prog", "serve"};
    if (json) words.push_back("--json");
    CaptureStdout();
    const int code = line.Run(static_cast<int>(words.size()), words.data());
    EXPECT_EQ(GetCapturedStdout(), json ? "{\"ready\":true}\n{\"ready\":false}\n" : "ready\n");
    EXPECT_EQ(code, 0);
  }
}

TEST(CommandLine, RefusesAnExtraArgument) {
  Example example;
  EXPECT_EQ(example.Run({"train", "m.json", "another"}), 2);
  EXPECT_THAT(example.stderr_text, HasSubstr("unknown argument 'another'"));
  EXPECT_THAT(example.stderr_text, HasSubstr("did you mean '--data another'?"));
}

TEST(CommandLine, RefusesAMissingArgumentAndABadNumber) {
  Example example;
  EXPECT_EQ(example.Run({"train"}), 2);
  EXPECT_THAT(example.stderr_text,
              HasSubstr("MODEL is required\nfix: add it, such as m.json; see"));
  EXPECT_EQ(example.Run({"train", "m.json", "--batch-size", "many"}), 2);
  EXPECT_THAT(example.stderr_text, HasSubstr("many"));
  EXPECT_EQ(example.Run({"train", "m.json", "--batch-size", "-1"}), 2);
}

TEST(CommandLine, AnEmptyValueDoesNotTakeTheNextFlag) {
  Example empty;
  EXPECT_EQ(empty.Run({"train", "m.json", "--out=", "--overwrite"}), 2);
  EXPECT_THAT(empty.stderr_text, HasSubstr("--out= has no value"));
  EXPECT_EQ(empty.out, "here");
  Example ending;  // a value that ends with =
  EXPECT_EQ(ending.Run({"train", "m.json", "--set", "a.b="}), 0);
}

TEST(CommandLine, ReportsAFailureAsTextAndJson) {
  Example example;
  EXPECT_EQ(example.Run({"table", "show", "--json"}), 4);
  EXPECT_EQ(example.stdout_text, "{\"error\":\"row 7 is corrupt\",\"fix\":\"\",\"exit_code\":4}\n");
  EXPECT_EQ(example.stderr_text, "error: row 7 is corrupt\n");
}

TEST(CommandLine, HelpShowsTypeDefaultAndExample) {
  Example example;
  EXPECT_EQ(example.Run({"train", "--help"}), 0);
  EXPECT_THAT(example.stdout_text, HasSubstr("--batch-size INT\n      Samples a step.\n"
                                             "      default: 64; example: --batch-size 32\n"));
  EXPECT_THAT(example.stdout_text, HasSubstr("required; example: m.json"));
  EXPECT_THAT(example.stdout_text, HasSubstr("Usage: prog train [OPTIONS] MODEL"));
}

}  // namespace
}  // namespace cistern::cli
