// Conversion between structs and JSON objects. One list of fields serves both directions, so that
// neither omits a field:
//
//   template <typename Fields, typename T>
//   void List(Fields& fields, T& sum) {
//     fields.Value("sum", sum.sum);
//     fields.Value("count", sum.count);
//   }
//
// Included by .cc files only: the JSON library is slow to compile.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "worker/report/run_event.h"
#include "worker/train/metric_json.h"

namespace cistern {

// Threads: one at a time.
class FieldWriter {
 public:
  template <typename T>
  void Value(const char* name, const T& value) {
    json_[name] = value;
  }
  template <typename T>
  void Value(const char* name, const std::optional<T>& value) {
    json_[name] = nullptr;
    if (value) json_[name] = *value;
  }
  void Value(const char* name, report::StopReason reason) {
    json_[name] = report::StopReasonName(reason);
  }
  template <typename T, typename ListFields>
  void Object(const char* name, const T& value, const ListFields& list) {
    FieldWriter below;
    list(below, value);
    json_[name] = std::move(below.json_);
  }
  template <typename T, typename ListFields>
  void Object(const char* name, const std::optional<T>& value, const ListFields& list) {
    json_[name] = nullptr;
    if (value) Object(name, *value, list);
  }
  // A field that was added to an existing format. It is omitted while empty or zero, so that older
  // versions can read the text.
  template <typename T>
  void Later(const char* name, const T& value) {
    if (value != T()) json_[name] = value;
  }
  void Later(const char* name, const model::MetricValues& values) {
    if (!values.empty()) PutMetrics(values, &json_[name]);
  }
  template <typename T, typename ListFields>
  void Later(const char* name, const std::optional<T>& value, const ListFields& list) {
    if (value) Object(name, *value, list);
  }
  const nlohmann::ordered_json& json() const { return json_; }

 private:
  nlohmann::ordered_json json_ = nlohmann::ordered_json::object();
};

// Requires every listed field with its type, and no other fields. Keeps the first error; later
// fields keep their values.
//
// Threads: one at a time.
class FieldReader {
 public:
  // path: the object's path for messages, ending in a dot. json must outlive this object.
  FieldReader(const nlohmann::ordered_json& json, const std::string& path)
      : json_(json), path_(path) {
    if (!json.is_object()) Complain("", "an object");
  }

  void Value(const char* name, uint64_t& out) {
    Take(name, &nlohmann::ordered_json::is_number_unsigned, "an integer of 0 or more", out);
  }
  void Value(const char* name, uint32_t& out) {
    uint64_t wide = 0;
    Value(name, wide);
    if (wide > std::numeric_limits<uint32_t>::max()) return Complain(name, "an integer below 2^32");
    out = static_cast<uint32_t>(wide);
  }
  void Value(const char* name, bool& out) {
    Take(name, &nlohmann::ordered_json::is_boolean, "true or false", out);
  }
  void Value(const char* name, double& out) {
    Take(name, &nlohmann::ordered_json::is_number, "a number", out);
  }
  void Value(const char* name, std::string& out) {
    Take(name, &nlohmann::ordered_json::is_string, "a string", out);
  }
  void Value(const char* name, report::StopReason& out) {
    std::string text;
    Value(name, text);
    const std::optional<report::StopReason> reason = report::FindStopReason(text);
    if (!reason) return Complain(name, "known to this version");
    out = *reason;
  }
  template <typename T>
  void Value(const char* name, std::map<std::string, T>& out) {
    Object(name, out, [](FieldReader& below, std::map<std::string, T>& values) {
      if (!below.json_.is_object()) return;
      for (const auto& item : below.json_.items()) {
        below.Value(item.key().c_str(), values[item.key()]);
      }
    });
  }
  void Value(const char* name, std::vector<uint64_t>& out) {
    const nlohmann::ordered_json* numbers = Find(name);
    if (numbers == nullptr) return;
    if (!numbers->is_array()) return Complain(name, "an array");
    for (const auto& number : *numbers) {
      if (!number.is_number_unsigned()) return Complain(name, "an array of integers of 0 or more");
      out.push_back(number.get<uint64_t>());
    }
  }
  void Value(const char* name, model::MetricValues& out) {
    const nlohmann::ordered_json* values = Find(name);
    if (values == nullptr) return;
    if (!values->is_object()) return Complain(name, "an object");
    for (const auto& item : values->items()) {
      model::MetricValue& value = out.emplace_back();
      value.name = item.key();
      value.is_count = item.value().is_number_unsigned();
      if (item.value().is_null()) continue;
      if (!item.value().is_number()) {
        return Complain(absl::StrCat(name, ".", item.key()), "a number");
      }
      value.value = item.value().get<double>();
    }
  }
  template <typename T>
  void Value(const char* name, std::optional<T>& out) {
    if (!IsNull(name)) Value(name, out.emplace());
  }
  template <typename T, typename ListFields>
  void Object(const char* name, T& out, const ListFields& list) {
    const nlohmann::ordered_json* value = Find(name);
    if (value == nullptr) return;
    FieldReader below(*value, absl::StrCat(path_, name, "."));
    list(below, out);
    Merge(below);
  }
  template <typename T, typename ListFields>
  void Object(const char* name, std::optional<T>& out, const ListFields& list) {
    if (!IsNull(name)) Object(name, out.emplace(), list);
  }

  // A field that older texts lack.
  template <typename T>
  void Later(const char* name, T& out) {
    if (json_.is_object() && json_.contains(name)) Value(name, out);
  }
  template <typename T, typename ListFields>
  void Later(const char* name, std::optional<T>& out, const ListFields& list) {
    if (json_.is_object() && json_.contains(name)) Object(name, out.emplace(), list);
  }

  // kDataLoss with the first error, which may be an unknown field.
  absl::Status Finish() {
    if (!status_.ok()) return status_;
    for (const auto& item : json_.items()) {
      if (asked_.count(item.key()) == 0) Complain(item.key(), "known to this version");
    }
    return status_;
  }

 private:
  template <typename T>
  void Take(const char* name, bool (nlohmann::ordered_json::*is_kind)() const noexcept,
            const char* kind, T& out) {
    const nlohmann::ordered_json* value = Find(name);
    if (value == nullptr) return;
    if (!(value->*is_kind)()) return Complain(name, kind);
    out = value->get<T>();
  }
  const nlohmann::ordered_json* Find(const char* name) {
    asked_.insert(name);
    if (!status_.ok()) return nullptr;
    const auto it = json_.find(name);
    if (it != json_.end()) return &*it;
    Complain(name, "present");
    return nullptr;
  }
  bool IsNull(const char* name) {
    const nlohmann::ordered_json* value = Find(name);
    return value == nullptr || value->is_null();
  }
  void Merge(FieldReader& below) {
    const absl::Status status = below.Finish();
    if (status_.ok()) status_ = status;
  }
  void Complain(const std::string& name, const char* expected) {
    if (!status_.ok()) return;
    status_ = absl::DataLossError(absl::StrCat("'", path_, name, "' is not ", expected));
  }

  const nlohmann::ordered_json& json_;
  const std::string path_;
  std::set<std::string> asked_;
  absl::Status status_;
};

}  // namespace cistern
