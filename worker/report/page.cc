#include "worker/report/page.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/io/new_file.h"
#include "worker/report/html.h"
#include "worker/report/page_sections.h"
#include "worker/report/style.h"

namespace cistern::report {
namespace {

// Runs whose folders end alike are shown with their whole paths.
void TellApart(std::vector<RunView>& runs) {
  std::map<std::string, int> uses;
  for (const RunView& run : runs) ++uses[run.name];
  for (RunView& run : runs) {
    if (uses[run.name] > 1) run.name = run.folder;
  }
}

}  // namespace

std::vector<std::string> NamesOf(const std::vector<RunView>& runs) {
  std::vector<std::string> names;
  for (const RunView& run : runs) names.push_back(run.name);
  return names;
}

std::string ReportPage(const std::vector<RunView>& runs, const std::string& made) {
  const std::string title = EscapeHtml(absl::StrJoin(NamesOf(runs), ", "));
  return absl::StrCat(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>",
      title, " \xC2\xB7 Cistern</title>\n<style>", kReportStyle, "</style>\n</head>\n<body>\n",
      "<main>\n", HeaderSection(runs), CurvesSection(runs), ScoresSection(runs), SlotsSection(runs),
      TimeSection(runs), ConfigurationSection(runs),
      "</main>\n<footer>Made by <code>cistern report</code>, ", EscapeHtml(made),
      "</footer>\n</body>\n</html>\n");
}

absl::Status WriteReport(FileSystem& files, const std::vector<std::string>& folders,
                         const std::string& path, const KeyTextsOf& key_texts) {
  if (folders.empty() || folders.size() > kMaxReportRuns) {
    return absl::InvalidArgumentError(
        absl::StrCat("a report shows 1 to ", kMaxReportRuns, " runs, not ", folders.size()));
  }
  std::vector<RunView> runs;
  for (const std::string& folder : folders) {
    CISTERN_ASSIGN_OR_RETURN(RunView run, ReadRun(files, folder));
    if (key_texts != nullptr) {
      CISTERN_ASSIGN_OR_RETURN(run.key_texts, key_texts(run));
    }
    runs.push_back(std::move(run));
  }
  TellApart(runs);
  const std::string made = absl::FormatTime("%Y-%m-%d %H:%M UTC", absl::Now(), absl::UTCTimeZone());
  return WriteWhole(files, path, ReportPage(runs, made));
}

}  // namespace cistern::report
