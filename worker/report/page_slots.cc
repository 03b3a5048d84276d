// What slots and dense columns contribute, and the worst-calibrated values.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "worker/report/html.h"
#include "worker/report/page_sections.h"

namespace cistern::report {
namespace {

constexpr size_t kMaxWorst = 12;

double Share(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

std::string PlainNameOf(const RunView& run, const SlotStudy& slot) {
  return run.SlotName(slot, static_cast<size_t>(&slot - run.study->slots.data()));
}

std::string NameOf(const RunView& run, const SlotStudy& slot) {
  return EscapeHtml(PlainNameOf(run, slot));
}

// A cell's worth of a text.
std::string Shortened(const std::string& text) {
  constexpr size_t kMost = 60;
  if (text.size() <= kMost) return text;
  size_t end = kMost;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;  // whole letters
  return text.substr(0, end) + "...";
}

// A bar whose length is `drop` relative to `most`; nothing for a column that does no good.
std::string Bar(double drop, double most) {
  const double share = most > 0 ? std::clamp(drop / most, 0.0, 1.0) : 0;
  return absl::StrFormat(
      "<div class=\"barcell\"><span class=\"bar\" style=\"width:%.1f%%\"></span></div>",
      100 * share);
}

double MostOf(const ModelStudy& study) {
  double most = 0;
  for (const SlotStudy& slot : study.slots) most = std::max(most, slot.importance.auc_drop);
  for (const ColumnStudy& column : study.columns) {
    most = std::max(most, column.importance.auc_drop);
  }
  return most;
}

std::string SlotTable(const RunView& run) {
  const ModelStudy& study = *run.study;
  std::vector<const SlotStudy*> slots;
  for (const SlotStudy& slot : study.slots) slots.push_back(&slot);
  std::stable_sort(slots.begin(), slots.end(), [](const SlotStudy* a, const SlotStudy* b) {
    return a->importance.auc_drop > b->importance.auc_drop;
  });
  HtmlTable table({{"Slot", false},
                   {"AUC lost", true, "if the slot's values are permuted among the samples"},
                   {"", false},
                   {"Log loss gained", true, "likewise"},
                   {"Keys", true, "distinct"},
                   {"Unseen keys", true, "share of the distinct keys that training has not seen"},
                   {"Unseen uses", true, "share of all occurrences that are of such keys"},
                   {"Keys a sample", true, "mean number of keys that are pooled"},
                   {"Most", true, "keys of one sample"},
                   {"Empty", true, "share of the samples without a key"}});
  for (const SlotStudy* slot : slots) {
    table.Add({NameOf(run, *slot), NumberHtml(slot->importance.auc_drop, 5),
               Bar(slot->importance.auc_drop, MostOf(study)),
               NumberHtml(slot->importance.logloss_rise, 5), CountHtml(slot->keys),
               PercentHtml(Share(slot->unseen_keys, slot->keys)),
               PercentHtml(Share(slot->unseen_occurrences, slot->occurrences)),
               NumberHtml(Share(slot->occurrences, study.samples), 2), CountHtml(slot->longest),
               PercentHtml(Share(slot->empty_samples, study.samples))});
  }
  return table.empty() ? "" : table.Html("Slots, by permutation importance");
}

std::string ColumnTable(const RunView& run) {
  const ModelStudy& study = *run.study;
  HtmlTable table({{"Dense column"},
                   {"AUC lost"},
                   {"", false},
                   {"Log loss gained"},
                   {"Mean"},
                   {"Deviation"},
                   {"Lowest"},
                   {"Highest"}});
  for (const ColumnStudy& column : study.columns) {
    const auto number = [](double x) { return EscapeHtml(absl::StrFormat("%.4g", x)); };
    const bool named = column.column < run.dense_names.size();
    table.Add({named ? EscapeHtml(run.dense_names[column.column]) : absl::StrCat(column.column),
               NumberHtml(column.importance.auc_drop, 5),
               Bar(column.importance.auc_drop, MostOf(study)),
               NumberHtml(column.importance.logloss_rise, 5), number(column.mean),
               number(column.deviation), number(column.lowest), number(column.highest)});
  }
  return table.empty() ? "" : table.Html("Dense columns");
}

// How many standard deviations the predictions are off.
double Sureness(const ValueCalibration& value) {
  const auto samples = static_cast<double>(value.samples);
  const double mean = std::clamp(value.predicted / std::max(samples, 1.0), 1e-6, 1 - 1e-6);
  return std::abs(value.predicted - value.positives) / std::sqrt(samples * mean * (1 - mean));
}

std::string WorstTable(const RunView& run) {
  const ModelStudy& study = *run.study;
  struct Row {
    const SlotStudy* slot;
    const ValueCalibration* value;
  };
  std::vector<Row> rows;
  for (const SlotStudy& slot : study.slots) {
    for (const ValueCalibration& value : slot.worst) rows.push_back({&slot, &value});
  }
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return Sureness(*a.value) > Sureness(*b.value);
  });
  rows.resize(std::min(rows.size(), kMaxWorst));
  HtmlTable table({{"Slot", false},
                   {"Value", false},
                   {"Samples"},
                   {"Mean prediction"},
                   {"Share of positives"},
                   {"Ratio", true, "mean prediction / share of positives"},
                   {"Sureness", true, "the difference in standard deviations of chance"},
                   {"AUC", true, "among these samples"}});
  bool has_unknown = false;
  for (const Row& row : rows) {
    const auto text = run.key_texts.find({PlainNameOf(run, *row.slot), row.value->key});
    const bool is_known = text != run.key_texts.end();
    has_unknown |= !is_known;
    const auto samples = static_cast<double>(std::max<uint64_t>(row.value->samples, 1));
    const std::optional<double> ratio =
        row.value->positives > 0 ? std::optional(row.value->predicted / row.value->positives)
                                 : std::nullopt;
    table.Add(
        {NameOf(run, *row.slot),
         is_known ? EscapeHtml(Shortened(text->second)) : absl::StrCat("key ", row.value->key),
         CountHtml(row.value->samples), NumberHtml(row.value->predicted / samples, 4),
         NumberHtml(row.value->positives / samples, 4), NumberHtml(ratio, 3),
         NumberHtml(Sureness(*row.value), 1), NumberHtml(row.value->auc, 4)});
  }
  if (table.empty()) return "";
  return table.Html("Worst-calibrated values") +
         (has_unknown && !run.slot_names.empty()
              ? NoteHtml("A key is a hash of a text. To see the texts, name the table that it was "
                         "made of when the report is written")
              : "");
}

}  // namespace

std::string SlotsSection(const std::vector<RunView>& runs) {
  std::string body;
  for (const RunView& run : runs) {
    if (!run.study) continue;
    if (runs.size() > 1) absl::StrAppend(&body, "<h3>", EscapeHtml(run.name), "</h3>\n");
    std::string worst = WorstTable(run);
    if (runs.size() > 1 && !worst.empty()) {
      worst = absl::StrCat("<details><summary>Worst-calibrated values</summary>\n", worst,
                           "</details>\n");
    }
    absl::StrAppend(&body, SlotTable(run), ColumnTable(run), worst,
                    NoteHtml(absl::StrCat("From ", CountHtml(run.study->samples),
                                          " samples of the evaluation data, AUC ",
                                          NumberHtml(run.study->auc, 6), ".")));
  }
  if (body.empty()) {
    body = NoteHtml("Not computed: the report was written without the importance of slots.");
  }
  return SectionHtml("slots", "Slots", body);
}

}  // namespace cistern::report
