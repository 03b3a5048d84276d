#include "common/value/pass_days.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace cistern {

uint32_t LongestExpireDays(const v1::Schema& schema) {
  uint32_t longest = 0;
  for (const v1::TableSpec& table : schema.tables()) {
    longest = std::max(longest, table.bounds().expire_days());
  }
  return longest;
}

void AddPassDay(PassId pass, uint32_t day, uint32_t longest, v1::PassDays* days) {
  auto& list = *days->mutable_days();
  if (list.empty() || day > list[list.size() - 1].day()) {
    v1::PassDays::Day* const today = list.Add();
    // Nothing is known about earlier passes: their rows count as seen today.
    today->set_first_pass(list.size() == 1 ? 0 : pass);
    today->set_day(day);
  }
  const uint64_t now = list[list.size() - 1].day();
  int old = 0;  // entries whose rows have expired in every table, but for one, which says so
  while (old + 1 < list.size() && uint64_t{list[old + 1].day()} + longest <= now) ++old;
  list.DeleteSubrange(0, old);
}

PassId FirstPassWithin(const v1::PassDays& days, uint32_t expire_days) {
  const auto& list = days.days();
  if (list.empty() || uint64_t{list[0].day()} + expire_days > list[list.size() - 1].day()) return 0;
  const auto within = std::find_if(list.begin(), list.end(), [&](const v1::PassDays::Day& entry) {
    return uint64_t{entry.day()} + expire_days > list[list.size() - 1].day();
  });
  return within->first_pass();  // today, at the latest
}

absl::Status CheckPassDays(const v1::PassDays& days, PassId pass, const v1::Schema& schema) {
  const auto& list = days.days();
  const uint64_t longest = LongestExpireDays(schema);
  if (longest == 0 && !list.empty()) {
    return absl::InvalidArgumentError("days of passes, but no table expires rows by day");
  }
  if (static_cast<uint64_t>(list.size()) > longest + 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(list.size(), " days of passes; rows expire after ", longest, " days at most"));
  }
  for (int i = 0; i < list.size(); ++i) {
    const bool follows = i == 0 || (list[i].day() > list[i - 1].day() &&
                                    list[i].first_pass() > list[i - 1].first_pass());
    if (follows && list[i].first_pass() <= pass) continue;
    return absl::InvalidArgumentError(absl::StrCat("the days of passes up to ", pass, " name pass ",
                                                   list[i].first_pass(), " for day ", list[i].day(),
                                                   ", which does not follow"));
  }
  return absl::OkStatus();
}

}  // namespace cistern
