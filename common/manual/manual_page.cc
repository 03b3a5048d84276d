#include "common/manual/manual_page.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace cistern {
namespace {

// Text as groff prints it: a dot or quote at the start of a line would be a request.
std::string Plain(const std::string& text) {
  std::string out = absl::StrReplaceAll(
      text, {{"\\", "\\e"}, {"-", "\\-"}, {"\n.", "\n\\&."}, {"\n'", "\n\\&'"}});
  if (absl::StartsWith(out, ".") || absl::StartsWith(out, "'")) out.insert(0, "\\&");
  return out;
}

std::string Bold(const std::string& text) {
  return absl::StrCat("\\fB", Plain(text), "\\fR");
}

std::string Section(const std::string& title) {
  return absl::StrCat(".SH ", title, "\n");
}

std::string Heading(const FlagManual& flag) {
  std::vector<std::string> names;
  for (const std::string& name : flag.names) names.push_back(Bold(name));
  const std::string value =
      flag.type.empty() ? "" : absl::StrCat(" \\fI", Plain(flag.type), "\\fR");
  return absl::StrCat(absl::StrJoin(names, ", "), value);
}

std::string Entries(const std::vector<FlagManual>& flags) {
  std::string text;
  for (const FlagManual& flag : flags) {
    absl::StrAppend(&text, ".TP\n", Heading(flag), "\n", Plain(flag.what), "\n");
    if (!flag.note.empty()) absl::StrAppend(&text, ".br\n", Plain(flag.note), "\n");
  }
  return text;
}

std::string Synopsis(const CommandManual& command) {
  std::string text = Bold(command.name);
  if (!command.flags.empty()) absl::StrAppend(&text, " [\\fIflags\\fR]");
  if (!command.commands.empty()) absl::StrAppend(&text, " \\fIcommand\\fR");
  for (const FlagManual& argument : command.arguments) {
    const std::string name =
        absl::StrCat("\\fI", Plain(argument.names[0]), "\\fR", argument.repeats ? " ..." : "");
    absl::StrAppend(&text, " ", argument.required ? name : absl::StrCat("[", name, "]"));
  }
  return text + "\n";
}

// The text that --help prints last, in lines as written.
std::string Notes(const std::string& footer) {
  return absl::StrCat(Section("NOTES"), ".nf\n", Plain(footer), "\n.fi\n");
}

std::string SeeAlso(const CommandManual& command) {
  std::vector<std::string> pages;
  const size_t parent = command.name.rfind(' ');
  if (parent != std::string::npos) {
    pages.push_back(absl::StrReplaceAll(command.name.substr(0, parent), {{" ", "-"}}));
  }
  for (const CommandManual& below : command.commands) pages.push_back(PageName(below));
  for (std::string& page : pages) page = absl::StrCat(Bold(page), "(1)");
  return pages.empty() ? "" : absl::StrCat(Section("SEE ALSO"), absl::StrJoin(pages, ", "), "\n");
}

}  // namespace

std::string PageName(const CommandManual& command) {
  return absl::StrReplaceAll(command.name, {{" ", "-"}});
}

std::string ManualPage(const CommandManual& command, const std::string& program) {
  const std::string page = PageName(command);
  std::string text =
      absl::StrCat(".TH ", absl::AsciiStrToUpper(page), " 1 \"\" \"", program, "\" Cistern\n");
  absl::StrAppend(&text, Section("NAME"), Plain(page), " \\- ", Plain(FirstSentence(command.what)),
                  "\n");
  absl::StrAppend(&text, Section("SYNOPSIS"), Synopsis(command));
  absl::StrAppend(&text, Section("DESCRIPTION"), Plain(command.what), "\n");
  if (!command.commands.empty()) absl::StrAppend(&text, Section("COMMANDS"));
  for (const CommandManual& below : command.commands) {
    absl::StrAppend(&text, ".TP\n", Bold(below.name), "\n", Plain(below.what), "\n");
  }
  if (!command.arguments.empty()) {
    absl::StrAppend(&text, Section("ARGUMENTS"), Entries(command.arguments));
  }
  if (!command.flags.empty()) absl::StrAppend(&text, Section("OPTIONS"), Entries(command.flags));
  if (!command.footer.empty()) absl::StrAppend(&text, Notes(command.footer));
  return absl::StrCat(text, SeeAlso(command));
}

}  // namespace cistern
