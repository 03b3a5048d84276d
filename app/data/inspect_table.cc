#include "app/data/inspect_table.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "app/data/missing_file.h"
#include "worker/data/prepare/column_list.h"
#include "worker/data/prepare/column_plan.h"
#include "worker/data/prepare/label_heads.h"
#include "worker/data/recipe/utf8_check.h"

namespace cistern::app {
namespace {

absl::Status Refuse(const std::string& what, const std::vector<std::string>& options,
                    const std::string& fix) {
  return WithFix(WithOptions(absl::InvalidArgumentError(what), options), fix);
}

// Says if a text of the table is not UTF-8.
void NoteEncoding(const data::TableProfile& profile, const JobCalls& calls) {
  for (const std::vector<std::string>& row : profile.sample) {
    for (size_t i = 0; i < row.size(); ++i) {
      if (row[i].size() >= data::TableProfile::kSampleText || data::IsUtf8(row[i]))
        continue;  // may be cut off
      calls.Note(absl::StrCat(
          "note: column '", profile.columns[i].name,
          "' holds text that is not UTF-8 (Latin-1?). The same words in UTF-8, in other files or "
          "requests, would have other keys (iconv -f latin1 -t utf8)"));
      return;
    }
  }
}

// Refuses labels that lack those before them (purchases without a click), unless few rows do.
absl::Status CheckOrder(const std::string& path, const InspectedTable& table,
                        const JobCalls& calls) {
  constexpr uint64_t kNoiseOneIn = 20;
  const auto name = [&](const data::LabelChoice& head) {
    return absl::StrCat("'", table.profile.columns[head.column].name, "'");
  };
  const std::vector<data::LabelChoice>& heads = table.plan.heads;
  for (size_t i = 1; i < heads.size(); ++i) {
    const data::BrokenOrder order = OrderOf(table.profile, heads[i - 1], heads[i]);
    if (order.rows == 0) continue;
    const std::string what =
        absl::StrCat("of ", order.of, " sampled rows in which ", name(heads[i]), " is 1, ",
                     name(heads[i - 1]), " is 0 in ", order.rows);
    if (order.rows * kNoiseOneIn <= order.of) {
      calls.Note(absl::StrCat("note: ", what, "; esmm predicts ", name(heads[i]), " as a part of ",
                              name(heads[i - 1])));
      continue;
    }
    return Refuse(
        absl::StrCat(path, ": esmm predicts labels each of which needs those before it, but ",
                     what),
        {"label", "model=mmoe"}, "name the labels in their order, such as click,buy, or use mmoe");
  }
  return absl::OkStatus();
}

// Whether the kind of model fits the labels.
absl::Status CheckHeads(const std::string& path, const InspectedTable& table,
                        const TableOptions& options, const JobCalls& calls) {
  const std::vector<data::LabelChoice>& heads = table.plan.heads;
  const std::optional<model::ModelKind> kind = model::ModelKindOf(options.model);
  if (kind && model::PredictsSeveral(*kind) != !heads.empty()) {
    return heads.empty()
               ? Refuse(absl::StrCat(path, ": ", Word(*kind),
                                     " predicts several labels, and there is one"),
                        {"label", "model"},
                        "name several, such as click,buy; or a model of one label, such as deepfm")
               : Refuse(absl::StrCat(path, ": ", Word(*kind), " predicts one label, and there are ",
                                     heads.size()),
                        {"model", "label"}, "mmoe, ple or esmm; or one label");
  }
  if (!heads.empty() && options.kept_negatives() < 1) {
    return Refuse(
        absl::StrCat(path, ": a row is negative by one label, and there are ", heads.size()),
        {"negative_rate", "label"}, "train on all rows");
  }
  for (const data::LabelChoice& head : heads) {
    const data::HeadRows rows = RowsOf(table.profile, head);
    if (rows.rarer() >= model::kMinRarerForDeep) continue;
    calls.Note(absl::StrCat("note: label '", table.profile.columns[head.column].name, "' is ",
                            2 * rows.positive < rows.known ? "1" : "0", " in ", rows.rarer(),
                            " of ", rows.known, " known rows: its predictions will be rough"));
  }
  return kind == model::ModelKind::kEsmm ? CheckOrder(path, table, calls) : absl::OkStatus();
}

}  // namespace

absl::StatusOr<InspectedTable> InspectTable(const std::string& path, const TableOptions& options,
                                            const JobCalls& calls) {
  CISTERN_RETURN_IF_ERROR(data::CheckNegativeRate(options.kept_negatives()));
  InspectedTable table;
  if (options.model != TableOptions().model && !model::ModelKindOf(options.model)) {
    return Refuse(absl::StrCat("there is no kind of model '", options.model, "'"), {"model"},
                  absl::StrCat("auto|", model::ModelKindWords()));
  }
  data::TableWishes wishes = options.wishes;
  data::LayoutWishes how;
  how.delimiter = options.delimiter;
  absl::StatusOr<std::vector<std::string>> columns = data::ExpandColumns(options.columns);
  if (!columns.ok()) return WithOptions(columns.status(), {"columns"});
  how.columns = *std::move(columns);
  how.add_columns = options.add_columns;
  how.mentions = data::LabelNames({}, wishes.label);
  if (how.mentions.size() > 1) how.mentions.push_back(wishes.label);
  if (!wishes.weight.empty()) how.mentions.push_back(wishes.weight);
  for (const auto* const names : {&wishes.dense, &wishes.sparse, &wishes.ignore, &wishes.multi}) {
    how.mentions.insert(how.mentions.end(), names->begin(), names->end());
  }
  for (const std::string& given : wishes.key_weights) {
    const auto [values, weights] = data::KeyWeightColumns(given);
    how.mentions.push_back(values);
    if (!weights.empty()) how.mentions.push_back(weights);
  }
  absl::StatusOr<data::TableLayout> layout = data::FindLayout(path, how);
  if (!layout.ok()) return MissingIsWrong(layout.status());
  data::WishFeatureLines(&*layout, &wishes);
  const auto inspect = [&] {
    return data::ProfileTable(path, *layout, [&](uint64_t rows, uint64_t) {
      if (calls.amount) calls.amount({"inspecting", "rows", rows, 0});
      return calls.CheckStop().ok();
    });
  };
  absl::StatusOr<data::TableProfile> profile = inspect();
  if (absl::IsDataLoss(profile.status()) && data::UseSingleSlot(&*layout)) {
    wishes = options.wishes;
    data::WishFeatureLines(&*layout, &wishes);
    profile = inspect();
  }
  if (!profile.ok()) return MissingIsWrong(profile.status());
  table.profile = *std::move(profile);
  NoteEncoding(table.profile, calls);
  absl::StatusOr<data::TablePlan> plan = data::PlanTable(table.profile, wishes);
  if (!plan.ok()) return MissingIsWrong(plan.status());
  table.plan = *std::move(plan);
  CISTERN_RETURN_IF_ERROR(CheckHeads(path, table, options, calls));
  return table;
}

nlohmann::ordered_json JsonOf(const InspectedTable& table) {
  nlohmann::ordered_json json;
  json["rows"] = table.profile.rows;
  json["delimiter"] = std::string(1, table.profile.layout.delimiter);
  json["header"] = table.profile.layout.header;
  json["label"] = table.profile.columns[table.plan.label.column].name;
  for (const data::LabelChoice& head : table.plan.heads) {
    json["labels"].push_back(table.profile.columns[head.column].name);
  }
  if (table.plan.weight) json["weight"] = table.profile.columns[*table.plan.weight].name;
  json["slots"] = table.plan.slots;
  json["dense"] = table.plan.dense;
  json["columns"] = nlohmann::ordered_json::array();
  for (size_t i = 0; i < table.profile.columns.size(); ++i) {
    const data::ColumnProfile& column = table.profile.columns[i];
    const data::ColumnChoice& choice = table.plan.columns[i];
    json["columns"].push_back({{"column", column.name},
                               {"type", Word(column.type)},
                               {"distinct", column.distinct},
                               {"distinct_exact", column.distinct_exact},
                               {"missing", column.missing},
                               {"role", Word(choice.role)},
                               {"note", choice.note}});
  }
  return json;
}

model::ModelKind KindFor(const InspectedTable& table, const TableOptions& options) {
  const std::optional<model::ModelKind> named = model::ModelKindOf(options.model);
  if (named) return *named;
  if (!table.plan.heads.empty()) return model::ModelKind::kMmoe;
  return RowsToTrain(table, options).rarer < model::kMinRarerForDeep ? model::ModelKind::kLr
                                                                     : model::ModelKind::kDeepFm;
}

// Of several labels, the one that has most rows of its rarer class: the shared network learns it.
TrainedRows RowsToTrain(const InspectedTable& table, const TableOptions& options) {
  const uint64_t rows = table.profile.rows;
  if (!table.plan.heads.empty()) {
    uint64_t rarer = 0;
    for (const data::LabelChoice& head : table.plan.heads) {
      rarer = std::max(rarer, RowsOf(table.profile, head).rarer());
    }
    return {rows, rarer};
  }
  const double positives = data::ShareOfPositives(table.profile, table.plan.label);
  if (options.kept_negatives() == 1) return {rows, model::RarerClass(rows, positives)};
  const double kept = positives + (1 - positives) * options.kept_negatives();
  const uint64_t trained = static_cast<uint64_t>(kept * static_cast<double>(rows));
  return {trained, model::RarerClass(trained, positives / kept)};
}

data::ConvertProgressCallback ReportRows(const JobCalls& calls, std::string what) {
  return [&calls, what = std::move(what)](const data::ConvertProgress& progress) {
    if (calls.amount) calls.amount({what, "rows", progress.rows, 0});
    return calls.CheckStop().ok();
  };
}

}  // namespace cistern::app
