#include "worker/report/slot_study.h"

#include "worker/report/json_reader.h"

namespace cistern::report {
namespace {

constexpr uint64_t kStudyFormat = 1;

using Json = nlohmann::ordered_json;

Json JsonOf(const SlotStudy& slot) {
  Json json;
  json["input"] = slot.input;
  json["slot"] = slot.slot;
  json["keys"] = slot.keys;
  json["unseen_keys"] = slot.unseen_keys;
  json["occurrences"] = slot.occurrences;
  json["unseen_occurrences"] = slot.unseen_occurrences;
  json["empty_samples"] = slot.empty_samples;
  json["longest"] = slot.longest;
  json["auc_drop"] = slot.importance.auc_drop;
  json["logloss_rise"] = slot.importance.logloss_rise;
  json["worst"] = Json::array();
  for (const ValueCalibration& value : slot.worst) {
    json["worst"].push_back({{"key", value.key},
                             {"samples", value.samples},
                             {"positives", value.positives},
                             {"predicted", value.predicted},
                             {"auc", report::JsonOf(value.auc)}});
  }
  return json;
}

Json JsonOf(const ColumnStudy& column) {
  return {{"column", column.column},
          {"mean", column.mean},
          {"deviation", column.deviation},
          {"lowest", column.lowest},
          {"highest", column.highest},
          {"auc_drop", column.importance.auc_drop},
          {"logloss_rise", column.importance.logloss_rise}};
}

Importance ImportanceIn(const Json& json) {
  return {NumberIn(json, "auc_drop").value_or(0), NumberIn(json, "logloss_rise").value_or(0)};
}

SlotStudy SlotIn(const Json& json) {
  SlotStudy slot;
  slot.input = TextIn(json, "input");
  slot.slot = static_cast<uint32_t>(CountIn(json, "slot").value_or(0));
  slot.keys = CountIn(json, "keys").value_or(0);
  slot.unseen_keys = CountIn(json, "unseen_keys").value_or(0);
  slot.occurrences = CountIn(json, "occurrences").value_or(0);
  slot.unseen_occurrences = CountIn(json, "unseen_occurrences").value_or(0);
  slot.empty_samples = CountIn(json, "empty_samples").value_or(0);
  slot.longest = CountIn(json, "longest").value_or(0);
  slot.importance = ImportanceIn(json);
  const Json* worst = ListIn(json, "worst");
  for (size_t i = 0; worst != nullptr && i < worst->size(); ++i) {
    const Json& value = (*worst)[i];
    slot.worst.push_back({CountIn(value, "key").value_or(0), CountIn(value, "samples").value_or(0),
                          NumberIn(value, "positives").value_or(0),
                          NumberIn(value, "predicted").value_or(0), NumberIn(value, "auc")});
  }
  return slot;
}

ColumnStudy ColumnIn(const Json& json) {
  ColumnStudy column;
  column.column = static_cast<uint32_t>(CountIn(json, "column").value_or(0));
  column.mean = NumberIn(json, "mean").value_or(0);
  column.deviation = NumberIn(json, "deviation").value_or(0);
  column.lowest = NumberIn(json, "lowest").value_or(0);
  column.highest = NumberIn(json, "highest").value_or(0);
  column.importance = ImportanceIn(json);
  return column;
}

}  // namespace

std::string FormatModelStudy(const ModelStudy& study) {
  Json json;
  json["format"] = kStudyFormat;
  json["samples"] = study.samples;
  json["positives"] = study.positives;
  json["auc"] = report::JsonOf(study.auc);
  json["logloss"] = study.logloss;
  json["slots"] = Json::array();
  for (const SlotStudy& slot : study.slots) json["slots"].push_back(JsonOf(slot));
  json["columns"] = Json::array();
  for (const ColumnStudy& column : study.columns) json["columns"].push_back(JsonOf(column));
  return DumpJson(json);
}

absl::StatusOr<ModelStudy> ParseModelStudy(const std::string& text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || CountIn(json, "format") != kStudyFormat) {
    return absl::DataLossError("not a study of format 1");
  }
  ModelStudy study;
  study.samples = CountIn(json, "samples").value_or(0);
  study.positives = NumberIn(json, "positives").value_or(0);
  study.auc = NumberIn(json, "auc");
  study.logloss = NumberIn(json, "logloss").value_or(0);
  const Json* slots = ListIn(json, "slots");
  for (size_t i = 0; slots != nullptr && i < slots->size(); ++i) {
    study.slots.push_back(SlotIn((*slots)[i]));
  }
  const Json* columns = ListIn(json, "columns");
  for (size_t i = 0; columns != nullptr && i < columns->size(); ++i) {
    study.columns.push_back(ColumnIn((*columns)[i]));
  }
  return study;
}

}  // namespace cistern::report
