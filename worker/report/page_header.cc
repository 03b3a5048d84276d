// What was trained, when and how well.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "worker/report/html.h"
#include "worker/report/page_sections.h"

namespace cistern::report {
namespace {

constexpr char kDot[] = " \xC2\xB7 ";

// The last scores: those of the final state, or of the last evaluation of an unfinished run.
const HistoryPoint* LastScores(const RunHistory& history) {
  if (history.final) return &*history.final;
  return history.evals.empty() ? nullptr : &history.evals.back();
}

std::optional<double> AucOf(const RunView& run) {
  const HistoryPoint* last = LastScores(run.history);
  return last == nullptr ? std::nullopt : last->auc;
}

std::optional<double> LogLossOf(const RunView& run) {
  const HistoryPoint* last = LastScores(run.history);
  return last == nullptr ? std::nullopt : last->logloss;
}

std::optional<double> RatioOf(const RunView& run) {
  return run.scores ? run.scores->calibration_ratio() : std::nullopt;
}

uint64_t SamplesOf(const RunView& run) {
  if (run.record && run.record->samples > 0) return run.record->samples;
  const RunHistory& history = run.history;
  if (history.final) return static_cast<uint64_t>(history.final->samples);
  return history.train.empty() ? 0 : static_cast<uint64_t>(history.train.back().samples);
}

std::string RateHtml(const RunView& run) {
  if (run.history.seconds <= 0) return kNoValueHtml;
  return CountHtml(
      static_cast<uint64_t>(static_cast<double>(SamplesOf(run)) / run.history.seconds));
}

std::string Moment(const std::string& utc) {  // "2026-11-23T15:34:30Z" as people write it
  return EscapeHtml(absl::StrReplaceAll(utc, {{"T", " "}, {"Z", " UTC"}}));
}

std::string Fact(absl::string_view name, const std::string& html) {
  if (html.empty()) return "";
  return absl::StrCat("<dt>", name, "</dt><dd>", html, "</dd>\n");
}

std::string Tile(absl::string_view name, const std::string& html) {
  return absl::StrCat("<div><dt>", name, "</dt><dd>", html, "</dd></div>\n");
}

std::string TablesHtml(const RunRecord& record) {
  std::string html;
  for (const TableRecord& table : record.tables) {
    absl::StrAppend(&html, html.empty() ? "" : "<br>", "<code>", EscapeHtml(table.digest),
                    "</code> ", EscapeHtml(table.name));
    if (table.rows > 0) absl::StrAppend(&html, kDot, CountHtml(table.rows), " rows");
  }
  return html;
}

std::string WhenHtml(const RunRecord& record) {
  if (record.started.empty()) return "";
  if (record.ended.empty()) return Moment(record.started) + kDot + "not ended yet";
  return absl::StrCat(Moment(record.started), " to ", Moment(record.ended));
}

std::string WhereHtml(const RunRecord& record) {
  std::string html =
      absl::StrCat(record.workers, record.workers == 1 ? " worker on " : " workers on ",
                   EscapeHtml(record.device), kDot, record.servers,
                   record.servers == 1 ? " server" : " servers");
  absl::StrAppend(&html, record.servers_at.empty()
                             ? " in the same process"
                             : absl::StrCat(" at ", EscapeHtml(record.servers_at)));
  return html;
}

// The score of data that no choice has seen.
std::string TestHtml(const RunRecord& record) {
  if (!record.test) return "";
  return absl::StrCat("AUC ", NumberHtml(record.test->auc, 6), kDot, "log loss ",
                      NumberHtml(record.test->logloss, 6), kDot, CountHtml(record.test->samples),
                      " samples of ", EscapeHtml(record.test->file));
}

std::string OneRun(const RunView& run) {
  std::string html = absl::StrCat("<h1>", EscapeHtml(run.name), "</h1>\n");
  if (run.record) {
    absl::StrAppend(&html, "<p class=\"sub\">", EscapeHtml(run.record->model), "</p>\n");
  }
  absl::StrAppend(&html, "<dl class=\"tiles\">\n", Tile("AUC", NumberHtml(AucOf(run), 6)),
                  Tile("Log loss", NumberHtml(LogLossOf(run), 6)),
                  Tile("Calibration", NumberHtml(RatioOf(run), 3)),
                  Tile("Samples", CountHtml(SamplesOf(run))),
                  Tile("Time", SecondsHtml(run.history.seconds)),
                  Tile("Samples a second", RateHtml(run)), "</dl>\n");
  std::string facts = Fact("Folder", EscapeHtml(run.folder));
  if (run.record) {
    const RunRecord& record = *run.record;
    absl::StrAppend(
        &facts, Fact("When", WhenHtml(record)), Fact("Where", WhereHtml(record)),
        Fact("Trained", absl::StrCat(CountHtml(record.iterations), " iterations", kDot,
                                     CountHtml(record.passes), " passes", kDot,
                                     CountHtml(record.epochs), " epochs")),
        Fact("Stopped by", EscapeHtml(record.stopped_by)), Fact("Test", TestHtml(record)),
        Fact("Commit", record.commit ? CountHtml(*record.commit) : ""),
        Fact("Digest", TablesHtml(record)), Fact("Cistern", EscapeHtml(record.version)));
  }
  if (run.history.losses > 0) {
    facts += Fact("Losses", absl::StrCat(CountHtml(run.history.losses), " of servers or workers, ",
                                         CountHtml(run.history.recoveries),
                                         " with a return to "
                                         "the last commit"));
  }
  return absl::StrCat(html, "<dl class=\"facts\">\n", facts, "</dl>\n");
}

std::string SeveralRuns(const std::vector<RunView>& runs) {
  std::optional<double> best;
  for (const RunView& run : runs) {
    if (const auto auc = AucOf(run)) best = std::max(best.value_or(*auc), *auc);
  }
  HtmlTable table({{"Run", false},
                   {"AUC"},
                   {"Log loss"},
                   {"Calibration", true, "sum of predictions / sum of labels"},
                   {"Samples"},
                   {"Time"},
                   {"Samples a second"},
                   {"Model", false},
                   {"Started", false},
                   {"Commit"},
                   {"Digest", false}});
  for (const RunView& run : runs) {
    const RunRecord record = run.record.value_or(RunRecord());
    const std::string auc = NumberHtml(AucOf(run), 6);
    table.Add(
        {EscapeHtml(run.name), best && AucOf(run) == best ? absl::StrCat("<b>", auc, "</b>") : auc,
         NumberHtml(LogLossOf(run), 6), NumberHtml(RatioOf(run), 3), CountHtml(SamplesOf(run)),
         SecondsHtml(run.history.seconds), RateHtml(run), EscapeHtml(record.model),
         absl::StrCat("<span class=\"keep\">", Moment(record.started), "</span>"),
         record.commit ? CountHtml(*record.commit) : kNoValueHtml,
         record.tables.empty()
             ? kNoValueHtml
             : absl::StrCat("<code>", EscapeHtml(record.tables.front().digest), "</code>")});
  }
  return absl::StrCat("<h1>", runs.size(),
                      " runs side by side</h1>\n<div style=\"height:1rem\">"
                      "</div>\n",
                      table.Html(""));
}

std::string Warnings(const std::vector<RunView>& runs) {
  std::string items;
  for (const RunView& run : runs) {
    for (const std::string& message : run.history.warnings) {
      absl::StrAppend(&items, "<li><b>Warning</b>",
                      runs.size() > 1 ? absl::StrCat(" (", EscapeHtml(run.name), ")") : "", ": ",
                      EscapeHtml(message), "</li>\n");
    }
  }
  return items.empty() ? "" : absl::StrCat("<ul class=\"warnings\">\n", items, "</ul>\n");
}

}  // namespace

std::string HeaderSection(const std::vector<RunView>& runs) {
  return absl::StrCat("<header>\n", runs.size() == 1 ? OneRun(runs.front()) : SeveralRuns(runs),
                      Warnings(runs), "</header>\n");
}

}  // namespace cistern::report
