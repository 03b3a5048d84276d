// The grammar of a model file as data: every key of every object, listed once. The check
// (grammar_check.h), the defaults and docs/configuration.md are all derived from these lists.
//
// Source: HugeCTR v2.3 (src/parsers/solver_parser.cpp, src/parser.cpp,
// src/parsers/learning_rate_scheduler_parser.cpp); the "cistern" object is Cistern's own.
#pragma once

#include <any>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "worker/model/config/layer_functions.h"

namespace cistern::model {

enum class JsonKind {
  kBool,
  kCount,  // an integer; 12.0 counts as one
  kNumber,
  kString,
  kWord,           // one of `words`; a number is compared as text and becomes that text
  kStrings,        // a string or an array of strings; becomes an array
  kBools,          // an array of true and false
  kCounts,         // an array of integers
  kNumbers,        // an array of numbers
  kRanges,         // an array of [lo, hi)
  kObject,         // `object`
  kObjects,        // an array of `object`
  kNamedObjects,   // an object whose members are `object`s under names that the user chooses
  kLayers,         // an array of layers; "type" selects one of the layer types
  kBoolOrCount,    // true, false or an integer
  kCountOrCounts,  // an integer or an array of them; becomes an array
  kAnything,       // accepted and not read
};

struct KeyGrammar;
struct ObjectGrammar;

// Stores the value of a key in the struct that `target` points to (key_binding.h).
using KeyStore = std::function<void(const KeyGrammar& key, const nlohmann::ordered_json& value,
                                    const std::any& target)>;

// One key. Chained setters keep the lists in grammar.cc readable as tables.
struct KeyGrammar {
  std::string name;
  JsonKind kind;
  std::string meaning;
  bool required = false;
  std::string fallback;                // JSON default of an absent key; empty: it stays absent
  std::string otherwise;               // for people: what an absent key without fallback means
  std::string note;                    // for people: reported whenever the key occurs
  double min = 0, max = 4294967295.0;  // kCount, kCounts, kNumber
  bool below_max = false;              // max itself is out of bounds
  bool above_min = false;              // min itself is out of bounds
  bool may_change = false;             // of a run that is resumed: training does not depend on it
  bool for_training = false;           // of a layer: predictions do not depend on it
  std::vector<std::string> words;
  const ObjectGrammar* object = nullptr;
  KeyStore store;  // null: a reader of its own takes the value

  KeyGrammar Required() && {
    required = true;
    return std::move(*this);
  }
  KeyGrammar Default(std::string json) && {
    fallback = std::move(json);
    return std::move(*this);
  }
  KeyGrammar Otherwise(std::string text) && {
    otherwise = std::move(text);
    return std::move(*this);
  }
  KeyGrammar Note(std::string text) && {
    note = std::move(text);
    return std::move(*this);
  }
  KeyGrammar MayChange() && {
    may_change = true;
    return std::move(*this);
  }
  KeyGrammar ForTraining() && {
    for_training = true;
    return std::move(*this);
  }
  KeyGrammar AtLeast(double x) && {
    min = x;
    return std::move(*this);
  }
  KeyGrammar Above(double x) && {
    min = x;
    above_min = true;
    return std::move(*this);
  }
  KeyGrammar AtMost(double x) && {
    max = x;
    return std::move(*this);
  }
  KeyGrammar Below(double x) && {
    max = x;
    below_max = true;
    return std::move(*this);
  }
};

// Makes LayerConfig::own_config of the values of the keys that name its members.
using OwnStore = void (*)(const std::vector<KeyGrammar>& keys, const nlohmann::ordered_json& values,
                          std::any* own_config);

struct ObjectGrammar {
  std::string title;  // heading in the documentation
  std::vector<KeyGrammar> keys;
  std::vector<std::string> key_names() const;
};

// The whole file.
const ObjectGrammar& FileGrammar();

enum class LayerRole { kData, kEmbedding, kDense, kLoss };

// The output of a layer beside its input, for variants of a model (model_variant.h). Each value
// includes those before it.
enum class LayerOutput {
  kOther,
  kVectors,     // vectors of the same size, if it reads vectors
  kShape,       // the same shape, and each element follows from its own: it may follow a product
  kActivation,  // and is no linear function of it: a product before it is a hidden layer
};

// A layer type: all that the reader of model files and the graph know of it.
struct LayerGrammar {
  std::string type;
  LayerRole role;
  ObjectGrammar object;
  std::string note;                // for people: reported once for a file that has such a layer
  LayerReader read = nullptr;      // null: the rows store all parameters
  LayerMaker make = nullptr;       // of a dense layer
  LayerExpander expand = nullptr;  // of a dense layer that is several; then the two above are null
  OwnStore store_own = nullptr;    // null: the type has no keys of its own
  LayerOutput output = LayerOutput::kOther;
};

// Every layer type: the Data layer, the embeddings, `dense`, and the losses.
std::vector<LayerGrammar> WithDenseLayers(const std::vector<LayerGrammar>& dense);
// Returns null for a type that is not among `layers`.
const LayerGrammar* FindLayerGrammar(const std::string& type,
                                     const std::vector<LayerGrammar>& layers);

// Whether a resumed run may change the value at `path` of a model file with these layer types
// (ModelConfig::values), such as "solver.display" or "layers[0].eval_source".
bool MayChangeOnResume(const std::string& path, const std::vector<LayerGrammar>& layers);

// Describes the values a key accepts, for messages and documentation: "integer >= 1",
// "Norm | Raw | Parquet".
std::string DescribeKind(const KeyGrammar& key);

// The tables of docs/configuration.md.
std::string GrammarMarkdown(const std::vector<LayerGrammar>& layers);

}  // namespace cistern::model
