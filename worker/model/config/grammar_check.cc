#include "worker/model/config/grammar_check.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/nearest_name.h"

namespace cistern::model {
namespace {

absl::Status Invalid(const std::string& path, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", what));
}

absl::Status Unexpected(const KeyGrammar& key, const std::string& path, const Json& value) {
  // DescribeKind leaves out a bound that is only the size of the number type.
  const bool too_large = value.is_number() && key.kind != JsonKind::kBool &&
                         key.max == 4294967295.0 && value.get<double>() > key.max && !key.below_max;
  return Invalid(
      path, absl::StrCat("expected ", DescribeKind(key), too_large ? ", at most 4294967295" : "",
                         ", found ", DescribeJson(value)));
}

bool WithinBounds(const KeyGrammar& key, double x) {
  if (!std::isfinite(x)) return false;
  if (key.above_min ? x <= key.min : x < key.min) return false;
  return key.below_max ? x < key.max : x <= key.max;
}

bool IsCount(const KeyGrammar& key, const Json& value) {
  if (!value.is_number()) return false;
  const double x = value.get<double>();
  return std::floor(x) == x && WithinBounds(key, x);
}

// Users write 1e5 for an integer; the readers need an integer type.
void MakeInteger(Json* value) {
  if (value->is_number_float()) *value = static_cast<uint64_t>(value->get<double>());
}

class FileCheck {
 public:
  FileCheck(const std::vector<LayerGrammar>& layers, std::vector<std::string>* notes)
      : layers_(layers), notes_(notes) {}

  absl::Status CheckObject(const ObjectGrammar& object, const std::string& path, Json* json) {
    if (!json->is_object()) {
      return Invalid(path.empty() ? object.title : path,
                     absl::StrCat("expected an object, found ", DescribeJson(*json)));
    }
    const std::string prefix = path.empty() ? "" : path + ".";
    for (const auto& item : json->items()) {
      const std::vector<std::string> known = object.key_names();
      if (std::find(known.begin(), known.end(), item.key()) != known.end()) continue;
      return Invalid(prefix + item.key(), absl::StrCat("unknown key", Suggest(item.key(), known)));
    }
    for (const KeyGrammar& key : object.keys) {
      const auto it = json->find(key.name);
      if (it == json->end()) {
        if (key.required) {
          return Invalid(prefix + key.name,
                         absl::StrCat("missing; it must be ", DescribeKind(key)));
        }
        if (key.fallback.empty()) continue;
        Json& value = (*json)[key.name] = Json::parse(key.fallback);
        CISTERN_RETURN_IF_ERROR(CheckValue(key, prefix + key.name, &value));
        continue;
      }
      if (!key.note.empty()) notes_->push_back(absl::StrCat(prefix, key.name, ": ", key.note));
      CISTERN_RETURN_IF_ERROR(CheckValue(key, prefix + key.name, &*it));
    }
    return absl::OkStatus();
  }

 private:
  absl::Status CheckValue(const KeyGrammar& key, const std::string& path, Json* value) {
    switch (key.kind) {
      case JsonKind::kAnything:
        return absl::OkStatus();
      case JsonKind::kBool:
        return Expect(value->is_boolean(), key, path, *value);
      case JsonKind::kString:
        return Expect(value->is_string(), key, path, *value);
      case JsonKind::kNumber:
        return Expect(value->is_number() && WithinBounds(key, value->get<double>()), key, path,
                      *value);
      case JsonKind::kCount:
        CISTERN_RETURN_IF_ERROR(Expect(IsCount(key, *value), key, path, *value));
        MakeInteger(value);
        return absl::OkStatus();
      case JsonKind::kBoolOrCount:
        if (value->is_boolean()) return absl::OkStatus();
        CISTERN_RETURN_IF_ERROR(Expect(IsCount(key, *value), key, path, *value));
        MakeInteger(value);
        return absl::OkStatus();
      case JsonKind::kWord:
        return CheckWord(key, path, value);
      case JsonKind::kStrings:
        return CheckStrings(key, path, value);
      case JsonKind::kBools:
        CISTERN_RETURN_IF_ERROR(Expect(value->is_array(), key, path, *value));
        for (size_t i = 0; i < value->size(); ++i) {
          CISTERN_RETURN_IF_ERROR(
              Expect((*value)[i].is_boolean(), key, absl::StrCat(path, "[", i, "]"), (*value)[i]));
        }
        return absl::OkStatus();
      case JsonKind::kCountOrCounts:
        if (value->is_number()) *value = Json::array({*value});
        return CheckCounts(key, path, value);
      case JsonKind::kCounts:
        return CheckCounts(key, path, value);
      case JsonKind::kNumbers:
        return CheckNumbers(key, path, *value);
      case JsonKind::kRanges:
        return CheckRanges(key, path, value);
      case JsonKind::kObject:
        return CheckObject(*key.object, path, value);
      case JsonKind::kObjects:
        CISTERN_RETURN_IF_ERROR(Expect(value->is_array(), key, path, *value));
        for (size_t i = 0; i < value->size(); ++i) {
          CISTERN_RETURN_IF_ERROR(
              CheckObject(*key.object, absl::StrCat(path, "[", i, "]"), &(*value)[i]));
        }
        return absl::OkStatus();
      case JsonKind::kNamedObjects:
        CISTERN_RETURN_IF_ERROR(Expect(value->is_object(), key, path, *value));
        for (const auto& item : value->items()) {
          CISTERN_RETURN_IF_ERROR(
              CheckObject(*key.object, absl::StrCat(path, ".", item.key()), &item.value()));
        }
        return absl::OkStatus();
      case JsonKind::kLayers:
        return CheckLayers(key, path, value);
    }
    return absl::OkStatus();
  }

  static absl::Status Expect(bool ok, const KeyGrammar& key, const std::string& path,
                             const Json& value) {
    return ok ? absl::OkStatus() : Unexpected(key, path, value);
  }

  static absl::Status CheckWord(const KeyGrammar& key, const std::string& path, Json* value) {
    if (value->is_number()) *value = value->dump();
    if (!value->is_string()) return Unexpected(key, path, *value);
    const std::string word = value->get<std::string>();
    if (std::find(key.words.begin(), key.words.end(), word) != key.words.end()) {
      return absl::OkStatus();
    }
    const std::string nearest = NearestName(word, key.words);
    return Invalid(path, absl::StrCat("expected ", DescribeKind(key), ", found '", word, "'",
                                      nearest.empty() ? "" : "; did you mean '" + nearest + "'?"));
  }

  static absl::Status CheckStrings(const KeyGrammar& key, const std::string& path, Json* value) {
    if (value->is_string()) *value = Json::array({*value});
    if (!value->is_array()) return Unexpected(key, path, *value);
    for (size_t i = 0; i < value->size(); ++i) {
      if (!(*value)[i].is_string()) {
        return Unexpected(key, absl::StrCat(path, "[", i, "]"), (*value)[i]);
      }
    }
    return absl::OkStatus();
  }

  static absl::Status CheckCounts(const KeyGrammar& key, const std::string& path, Json* value) {
    if (!value->is_array()) return Unexpected(key, path, *value);
    for (size_t i = 0; i < value->size(); ++i) {
      if (!IsCount(key, (*value)[i])) {
        return Unexpected(key, absl::StrCat(path, "[", i, "]"), (*value)[i]);
      }
      MakeInteger(&(*value)[i]);
    }
    return absl::OkStatus();
  }

  static absl::Status CheckNumbers(const KeyGrammar& key, const std::string& path,
                                   const Json& value) {
    if (!value.is_array()) return Unexpected(key, path, value);
    for (size_t i = 0; i < value.size(); ++i) {
      if (value[i].is_number() && WithinBounds(key, value[i].get<double>())) continue;
      return Unexpected(key, absl::StrCat(path, "[", i, "]"), value[i]);
    }
    return absl::OkStatus();
  }

  static absl::Status CheckRanges(const KeyGrammar& key, const std::string& path, Json* value) {
    if (!value->is_array()) return Unexpected(key, path, *value);
    for (size_t i = 0; i < value->size(); ++i) {
      Json& range = (*value)[i];
      const bool ok = range.is_array() && range.size() == 2 && IsCount(key, range[0]) &&
                      IsCount(key, range[1]) && range[0].get<double>() < range[1].get<double>();
      if (!ok) {
        return Invalid(absl::StrCat(path, "[", i, "]"),
                       absl::StrCat("expected [lo, hi] with 0 <= lo < hi, found ", range.dump()));
      }
      MakeInteger(&range[0]);
      MakeInteger(&range[1]);
    }
    return absl::OkStatus();
  }

  absl::Status CheckLayers(const KeyGrammar& key, const std::string& path, Json* value) {
    if (!value->is_array()) return Unexpected(key, path, *value);
    for (size_t i = 0; i < value->size(); ++i) {
      Json& layer = (*value)[i];
      const std::string at = absl::StrCat(path, "[", i, "]");
      if (!layer.is_object())
        return Invalid(at, "expected an object, found " + DescribeJson(layer));
      const auto type = layer.find("type");
      if (type == layer.end()) {
        return Invalid(at + ".type", "missing; it must be the layer type");
      }
      if (!type->is_string()) {
        return Invalid(at + ".type", "expected string, found " + DescribeJson(*type));
      }
      const LayerGrammar* grammar = FindLayerGrammar(type->get<std::string>(), layers_);
      if (grammar == nullptr) return UnknownType(type->get<std::string>(), at);
      const bool noted = std::find(noted_.begin(), noted_.end(), grammar) != noted_.end();
      if (!grammar->note.empty() && !noted) {
        notes_->push_back(absl::StrCat(at, ".type: ", grammar->note));
        noted_.push_back(grammar);
      }
      CISTERN_RETURN_IF_ERROR(CheckObject(grammar->object, at, &layer));
    }
    return absl::OkStatus();
  }

  absl::Status UnknownType(const std::string& type, const std::string& at) const {
    std::vector<std::string> known;
    for (const LayerGrammar& layer : layers_) known.push_back(layer.type);
    const std::string nearest = NearestName(type, known), types = absl::StrJoin(known, ", ");
    return Invalid(at + ".type",
                   absl::StrCat("unknown layer type '", type, "'",
                                nearest.empty() ? "" : "; did you mean '" + nearest + "'?",
                                nearest.empty() ? "; layer types: " : " Layer types: ", types));
  }

  const std::vector<LayerGrammar>& layers_;
  std::vector<std::string>* notes_;
  std::vector<const LayerGrammar*> noted_;  // types whose note has been reported
};

}  // namespace

absl::Status CheckFile(const std::vector<LayerGrammar>& layers, Json* root,
                       std::vector<std::string>* notes) {
  return FileCheck(layers, notes).CheckObject(FileGrammar(), "", root);
}

}  // namespace cistern::model
