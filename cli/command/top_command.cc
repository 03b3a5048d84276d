#include "cli/command/top_command.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>

#include "absl/strings/str_format.h"
#include "app/fleet/fleet_session.h"
#include "cli/command/shared_flags.h"
#include "cli/terminal/aligned_text.h"
#include "cli/terminal/interrupt.h"
#include "common/base/amount_text.h"

namespace cistern::cli {
namespace {

using Rates = std::vector<std::optional<app::ServerRates>>;

// A rate of a server that is known to be up, or "-".
std::string RateText(const std::optional<app::ServerRates>& rates, double app::ServerRates::*rate) {
  return rates ? CountText((*rates).*rate) : "-";
}

std::string PassesText(const std::optional<app::ServerRates>& rates) {
  return rates ? absl::StrFormat("%.1f", rates->passes * 60) : "-";
}

std::vector<std::string> RowOf(const app::ServerState& server,
                               const std::optional<app::ServerRates>& rates) {
  if (!server.reached.ok()) {
    return {"-", server.address, server.text(), "-", "-", "-", "-", "-", "-", "-", "-", "-"};
  }
  const v1::StatsReply& stats = server.stats;
  return {absl::StrCat(stats.rank(), "/", server.hello.server_num()),
          server.address,
          server.text(),
          absl::StrCat(stats.committed_pass()),
          server.hello.durable() ? absl::StrCat(stats.commit()) : "-",
          PassesText(rates),
          CountText(static_cast<double>(app::RowsOf(stats))),
          RateText(rates, &app::ServerRates::pulled_keys),
          RateText(rates, &app::ServerRates::pushed_keys),
          BytesText(stats.staged_bytes()),
          BytesText(stats.resident_bytes()),
          DurationText(stats.uptime_seconds())};
}

// "3 servers, 2 answer: 1.20M rows, 4.5 GiB, pull 3.20M keys/s, push 1.10M keys/s".
std::string SummaryText(const app::FleetMoment& moment, const Rates& rates) {
  app::ServerRates sum;
  uint64_t rows = 0, bytes = 0;
  size_t answer = 0;
  for (size_t i = 0; i < rates.size(); ++i) {
    const app::ServerState& server = moment.status.servers[i];
    if (!server.reached.ok()) continue;
    ++answer;
    rows += app::RowsOf(server.stats);
    bytes += server.stats.resident_bytes();
    if (rates[i]) sum.pulled_keys += rates[i]->pulled_keys;
    if (rates[i]) sum.pushed_keys += rates[i]->pushed_keys;
  }
  std::string text = absl::StrCat(rates.size(), rates.size() == 1 ? " server" : " servers");
  if (answer < rates.size()) absl::StrAppend(&text, ", ", answer, " answer");
  absl::StrAppend(&text, ": ", CountText(static_cast<double>(rows)), " rows, ", BytesText(bytes),
                  ", pull ", CountText(sum.pulled_keys), " keys/s, push ",
                  CountText(sum.pushed_keys), " keys/s");
  return text;
}

// Shows one text in place of the one before, on a screen of its own that disappears at the end.
//
// Threads: one at a time.
class Screen {
 public:
  Screen() { std::fputs("\x1b[?1049h\x1b[?25l", stdout); }
  ~Screen() {
    std::fputs("\x1b[?25h\x1b[?1049l", stdout);
    std::fflush(stdout);
  }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  // The servers that fit beside the other lines.
  static size_t most_servers() {
    constexpr size_t kOtherLines = 6;
    winsize size = {};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0) return SIZE_MAX;
    return size.ws_row > kOtherLines ? size.ws_row - kOtherLines : 1;
  }

  void Show(const std::string& text) {
    std::string lines = "\x1b[H";
    for (const char c : text) {
      if (c == '\n') lines += "\x1b[K";  // what was longer before
      lines += c;
    }
    std::fputs((lines + "\x1b[J").c_str(), stdout);
    std::fflush(stdout);
  }
};

// Shows the fleet until `count` times are shown or a signal comes.
absl::StatusOr<Report> RunTop(const app::WatchFleetOptions& options, bool is_terminal,
                              Console& console) {
  std::optional<Screen> screen;
  Report last;
  uint64_t shown = 0;
  const auto show = [&](const app::FleetMoment& now, const Rates& rates) {
    const size_t most = is_terminal ? Screen::most_servers() : SIZE_MAX;
    last = {app::JsonOf(now, rates), TopText(now, rates, most), absl::OkStatus()};
    if (++shown == options.count) return;  // becomes the result
    if (is_terminal) {
      if (!screen) screen.emplace();
      screen->Show(last.text + "Ctrl-C ends\n");
    } else {
      console.Announce({last.json, last.text + "\n", absl::OkStatus()});
    }
  };
  CISTERN_RETURN_IF_ERROR(app::WatchFleet(options, CatchInterrupts(), show).status());
  // On a terminal the last one stays when the screen is gone.
  if (is_terminal || (shown > 0 && shown == options.count)) return last;
  Report end;  // all was announced
  end.json["displays"] = shown;
  return end;
}

}  // namespace

std::string TopText(const app::FleetMoment& moment, const Rates& rates, size_t most_servers) {
  std::vector<std::vector<std::string>> rows = {{"RANK", "ADDRESS", "STATE", "PASS", "COMMIT",
                                                 "PASSES/MIN", "ROWS", "PULL/S", "PUSH/S", "STAGED",
                                                 "MEMORY", "UPTIME"}};
  const size_t shown = std::min(rates.size(), most_servers);
  for (size_t i = 0; i < shown; ++i) rows.push_back(RowOf(moment.status.servers[i], rates[i]));
  std::string text =
      absl::StrCat(absl::FormatTime("%Y-%m-%d %H:%M:%SZ", moment.time, absl::UTCTimeZone()), "  ",
                   SummaryText(moment, rates), "\n", AlignedText(rows));
  if (shown < rates.size()) absl::StrAppend(&text, "... and ", rates.size() - shown, " more\n");
  for (const std::string& difference : moment.status.differences) {
    absl::StrAppend(&text, "differ: ", difference, "\n");
  }
  return text;
}

void AddTopCommand(Command& root) {
  auto flags = std::make_shared<app::WatchFleetOptions>();
  Command& command = root.Add("top",
                              "Shows what each server of a fleet does, again and again: keys a "
                              "second, passes a minute, memory.",
                              "cistern top --servers 127.0.0.1:7700,127.0.0.1:7701");
  command.Flag("--servers", &flags->status.servers,
               {"HOST:PORT,...", "The servers to ask.", "--servers 127.0.0.1:7700,127.0.0.1:7701",
                kRequired});
  AddTlsFlags(command, &flags->status.tls);
  command.Flag("--interval", &flags->interval,
               {"SECONDS", "Time between two displays.", "--interval 5"});
  command.Flag("--count", &flags->count,
               {"INT", "Ends after so many displays; 0: at Ctrl-C.", "--count 10"});
  command.Flag("--timeout", &flags->status.timeout,
               {"SECONDS", "How long to wait for an answer.", "--timeout 2"});
  command.Does([flags](Console& console) {
    return RunTop(*flags, console.is_terminal() && isatty(STDOUT_FILENO) == 1, console);
  });
}

}  // namespace cistern::cli
