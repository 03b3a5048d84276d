#include "worker/data/recipe/feature_line.h"

#include <algorithm>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/shown_text.h"
#include "worker/data/format/line_reader.h"
#include "worker/data/recipe/field_values.h"
#include "worker/data/recipe/value_text.h"

namespace cistern::data {
namespace {

std::string Shown(absl::string_view token) {
  return absl::StrCat("'", ShownText(token, 40), "'");
}

// The text that a column gets of "index:value"; empty if a value of 0 drops the index.
absl::Status ReadFeature(absl::string_view token, FeatureValues values, absl::string_view* text) {
  const size_t colon = token.rfind(':');
  double value = 0;
  if (values == FeatureValues::kWeights) {
    CISTERN_RETURN_IF_ERROR(ReadKeyWeight(token.substr(colon + 1), &value));
    *text = value == 0 ? absl::string_view() : token;
    return absl::OkStatus();
  }
  ReadNumber(token.substr(colon + 1), &value);
  if (value != 1 && values == FeatureValues::kOnesOfModel) {
    return WithOptions(
        absl::DataLossError("the value of a key must be 1, as all were in the data that this model "
                            "was made of: make and train a model whose keys have weights"),
        {"key_weights='*'"});
  }
  if (value != 1 && values == FeatureValues::kOnes) {
    return WithOptions(
        absl::DataLossError("the value of a key must be 1, unless values are the weights of keys "
                            "or are dropped"),
        {"key_weights='*'", "any_value"});
  }
  *text = value == 0 ? absl::string_view() : token.substr(0, colon);
  return absl::OkStatus();
}

class LibsvmLine : public FeatureLine {
 public:
  LibsvmLine(FeatureValues values, size_t slots) : values_(values), slots_(slots) {}

  absl::Status Split(absl::Span<const absl::string_view> tokens,
                     std::vector<absl::string_view>* fields) override {
    // The query of a ranking is no feature.
    if (!tokens.empty() && absl::StartsWith(tokens[0], "qid:")) tokens.remove_prefix(1);
    joined_.clear();
    for (size_t i = 0; i < tokens.size(); ++i) {
      absl::string_view text;
      CISTERN_RETURN_IF_ERROR(Read(tokens[i], i, &text));
      if (slots_ > 0) {
        fields->push_back(text);
      } else if (!text.empty()) {
        absl::StrAppend(&joined_, joined_.empty() ? "" : " ", text);
      }
    }
    if (slots_ == 0) {
      fields->push_back(joined_);
    } else if (tokens.size() != slots_ && values_ == FeatureValues::kOnesOfModel) {
      return WithOptions(absl::DataLossError(absl::StrCat(
                             "has ", tokens.size(),
                             " features, but each line of the data that this model was "
                             "made of has ",
                             slots_,
                             ", a slot for each: make and train a model with one slot for "
                             "all features, whose keys have weights")),
                         {"key_weights='*'"});
    } else if (tokens.size() != slots_) {
      return WithOptions(
          absl::DataLossError(absl::StrCat(
              "has ", tokens.size(), " features, but the first line has ", slots_,
              ": with a slot per position, all lines need the same number; else put all in a "
              "single slot")),
          {"libsvm_slots=single"});
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Read(absl::string_view token, size_t place, absl::string_view* text) const {
    const std::string what = absl::StrCat("feature ", place, " is ", Shown(token));
    const auto colons = std::count(token.begin(), token.end(), ':');
    if (colons == 2) {
      return WithOptions(
          absl::DataLossError(absl::StrCat(
              what,
              ", which is libffm (field:feature:value), not libsvm: convert it as that "
              "format, which makes a slot of each field")),
          {"format=libffm"});
    }
    if (colons != 1 || token.front() == ':' || !IsFiniteNumber(token.substr(token.find(':') + 1))) {
      return absl::DataLossError(absl::StrCat(what, ", not index:value"));
    }
    return AddContext(ReadFeature(token, values_, text), what);
  }

  const FeatureValues values_;
  const size_t slots_;
  std::string joined_;
};

bool SplitLibffm(absl::string_view token, absl::string_view* field, absl::string_view* feature) {
  const std::vector<absl::string_view> texts = absl::StrSplit(token, ':');
  if (texts.size() != 3 || texts[0].empty() || texts[1].empty()) return false;
  *field = texts[0];
  *feature = token.substr(texts[0].size() + 1);
  return IsFiniteNumber(texts[2]);
}

// Lines whose features name their columns.
class NamedFieldsLine : public FeatureLine {
 public:
  NamedFieldsLine(FeatureValues values, const std::vector<std::string>& columns)
      : values_(values), texts_(columns.empty() ? 0 : columns.size() - 1) {
    for (size_t i = 1; i < columns.size(); ++i) places_[columns[i]] = i - 1;
  }

  absl::Status Split(absl::Span<const absl::string_view> tokens,
                     std::vector<absl::string_view>* fields) override {
    for (std::string& text : texts_) text.clear();
    CISTERN_RETURN_IF_ERROR(AddTokens(tokens));
    fields->insert(fields->end(), texts_.begin(), texts_.end());
    return absl::OkStatus();
  }

 protected:
  virtual absl::Status AddTokens(absl::Span<const absl::string_view> tokens) = 0;

  // feature: "index:value". token: for errors. kind: what the format calls a field.
  absl::Status Add(absl::string_view kind, absl::string_view field, absl::string_view feature,
                   absl::string_view token) {
    absl::string_view text;
    CISTERN_RETURN_IF_ERROR(
        AddContext(ReadFeature(feature, values_, &text), absl::StrCat("holds ", Shown(token))));
    const auto place = places_.find(field);
    if (place == places_.end()) {
      return absl::DataLossError(absl::StrCat("has a ", kind, " ", ShownText(field, 40),
                                              ", which the first data did not have: leave the ",
                                              kind, " out, or begin anew with data that has it"));
    }
    if (text.empty()) return absl::OkStatus();
    std::string& all = texts_[place->second];
    absl::StrAppend(&all, all.empty() ? "" : " ", text);
    return absl::OkStatus();
  }

 private:
  const FeatureValues values_;
  std::map<std::string, size_t, std::less<>> places_;  // of texts_
  std::vector<std::string> texts_;
};

class LibffmLine : public NamedFieldsLine {
 public:
  using NamedFieldsLine::NamedFieldsLine;

 private:
  absl::Status AddTokens(absl::Span<const absl::string_view> tokens) override {
    for (const absl::string_view token : tokens) {
      absl::string_view field, feature;
      if (!SplitLibffm(token, &field, &feature)) {
        return absl::DataLossError(
            absl::StrCat("holds ", Shown(token), ", not field:feature:value"));
      }
      CISTERN_RETURN_IF_ERROR(Add("field", field, feature, token));
    }
    return absl::OkStatus();
  }
};

class VwLine : public NamedFieldsLine {
 public:
  using NamedFieldsLine::NamedFieldsLine;

 private:
  absl::Status AddTokens(absl::Span<const absl::string_view> tokens) override {
    CISTERN_ASSIGN_OR_RETURN(const std::vector<VwFeature> features, VwFeatures(tokens));
    for (const VwFeature& one : features) {
      const size_t colon = one.feature.find(':');
      const bool alone = colon == absl::string_view::npos;
      if (colon == 0 || (!alone && !IsFiniteNumber(one.feature.substr(colon + 1)))) {
        return absl::DataLossError(
            absl::StrCat("holds ", Shown(one.feature), ", not feature or feature:value"));
      }
      const std::string with_value = alone ? absl::StrCat(one.feature, ":1") : "";
      CISTERN_RETURN_IF_ERROR(Add("namespace", one.space,
                                  alone ? absl::string_view(with_value) : one.feature,
                                  one.feature));
    }
    return absl::OkStatus();
  }
};

// Refuses what is between the label and the first namespace, and changes what a sample counts.
absl::Status CheckVwHead(absl::Span<const absl::string_view> tokens) {
  for (size_t i = 0; i < tokens.size() && tokens[i].front() != '\''; ++i) {
    if (!IsFiniteNumber(tokens[i])) {
      return absl::DataLossError(
          absl::StrCat("holds ", Shown(tokens[i]), " before its first namespace"));
    }
    double number = 0;
    ReadNumber(tokens[i], &number);
    if (number == (i == 0 ? 1 : 0)) continue;
    return absl::DataLossError(absl::StrCat(
        i == 0 ? "its importance is " : "its initial prediction is ", Shown(tokens[i]),
        i == 0 ? ": weights of samples are read from tables only: write a table with a column for "
                 "the label, one for the weight, and one for each namespace, whose features have "
                 "spaces between them"
               : ", which is not used: leave it out"));
  }
  return absl::OkStatus();
}

}  // namespace

FeatureValues FeatureValuesOf(bool weights, bool any_value) {
  return weights     ? FeatureValues::kWeights
         : any_value ? FeatureValues::kIgnored
                     : FeatureValues::kOnes;
}

FeatureValues FeatureValuesOf(const Recipe& recipe) {
  const FeatureValues values = FeatureValuesOf(HasKeyWeights(recipe), recipe.layout.any_value);
  return values == FeatureValues::kOnes ? FeatureValues::kOnesOfModel : values;
}

std::vector<absl::string_view> LineTokens(absl::string_view line, TextFormat format) {
  if (const char comment = EntryOf(format).comment) line = line.substr(0, line.find(comment));
  return absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
}

absl::StatusOr<bool> NextTokens(LineReader& lines, TextFormat format,
                                std::vector<absl::string_view>* tokens) {
  tokens->clear();
  while (tokens->empty()) {
    absl::string_view line;
    CISTERN_ASSIGN_OR_RETURN(const bool found, lines.Next(&line));
    if (!found) return false;
    *tokens = LineTokens(line, format);
  }
  return true;
}

bool HasLabel(absl::Span<const absl::string_view> tokens) {
  return !tokens.empty() && tokens[0].find_first_of(":|") == absl::string_view::npos;
}

std::unique_ptr<FeatureLine> NewLibsvmLine(FeatureValues values, size_t slots) {
  return std::make_unique<LibsvmLine>(values, slots);
}

std::unique_ptr<FeatureLine> NewLibffmLine(FeatureValues values,
                                           const std::vector<std::string>& columns) {
  return std::make_unique<LibffmLine>(values, columns);
}

std::unique_ptr<FeatureLine> NewVwLine(FeatureValues values,
                                       const std::vector<std::string>& columns) {
  return std::make_unique<VwLine>(values, columns);
}

absl::StatusOr<std::vector<VwFeature>> VwFeatures(absl::Span<const absl::string_view> tokens) {
  std::vector<VwFeature> features;
  std::vector<absl::string_view> head;
  absl::string_view space;  // empty: the line has not begun one
  for (const absl::string_view token : tokens) {
    const std::vector<absl::string_view> parts = absl::StrSplit(token, '|');
    const bool is_tag = space.empty() && parts.size() > 1;  // 'tag|namespace, or tag|namespace
    if (!parts[0].empty() && !is_tag) {
      if (space.empty()) {
        head.push_back(token);
      } else {
        features.push_back({space, parts[0]});
      }
    }
    for (size_t i = 1; i < parts.size(); ++i) {
      if (absl::StrContains(parts[i], ':')) {
        return absl::DataLossError(absl::StrCat("the namespace ", Shown(parts[i]),
                                                " has a factor, which is not used: multiply the "
                                                "values of its features by it"));
      }
      space = parts[i].empty() ? absl::string_view(kNoNamespace) : parts[i];
    }
  }
  CISTERN_RETURN_IF_ERROR(CheckVwHead(head));
  return features;
}

bool LibffmField(absl::string_view token, absl::string_view* field) {
  absl::string_view feature;
  return SplitLibffm(token, field, &feature);
}

}  // namespace cistern::data
