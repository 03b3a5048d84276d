// The keys of the optimizer object, at top level and inside an embedding layer.
#include "common/value/update_rule.h"
#include "worker/model/config/grammar_keys.h"

namespace cistern::model::grammar {

// Keys that every hparam object of an optimizer accepts.
Keys ScheduleKeys() {
  const std::string inherited = "; in an embedding: as in the top-level optimizer";
  return {Count("warmup_steps", "steps until the rate reaches learning_rate")
              .AtLeast(1)
              .Otherwise("1" + inherited)
              .AtMost(kAnySize),
          Count("decay_start", "last step before the rate decays; 0: no decay")
              .Otherwise("0" + inherited)
              .AtMost(kAnySize),
          Count("decay_steps", "length of the decay in steps")
              .AtLeast(1)
              .Otherwise("1" + inherited)
              .AtMost(kAnySize),
          Number("decay_power", "exponent of the polynomial decay")
              .AtLeast(1)
              .Otherwise("2" + inherited),
          Number("end_lr", "lower bound of the decayed rate").Otherwise("0" + inherited)};
}

static KeyGrammar ConstantKey(const RuleConstant& constant) {
  KeyGrammar key = Number(constant.json_key, constant.meaning).Default(constant.default_json);
  switch (constant.range) {
    case ConstantRange::kDecay:
      return std::move(key).Below(1);
    case ConstantRange::kAboveZero:
      return std::move(key).Above(0);
    case ConstantRange::kZeroOrAbove:
      return key;
  }
  return key;
}

static Keys ConstantKeys(absl::Span<const RuleConstant> constants) {
  Keys keys;
  for (const RuleConstant& constant : constants) keys.push_back(ConstantKey(constant));
  return keys;
}

Keys AdamConstantKeys() {
  return ConstantKeys(AdamRule::kConstants);
}

// Keys of a rule that are accepted and change nothing here.
static Keys UnusedKeysOf(RuleKind kind) {
  if (kind != RuleKind::kSgd) return {};
  return {Bool("atomic_update",
               "unordered sums in HugeCTR; no effect: sums here always have a fixed order")
              .Default("false")};
}

static ObjectGrammar HparamGrammar(const RuleInfo& rule) {
  return {rule.hparam, Keys{Number("learning_rate", "learning rate after the warm-up").Required()} +
                           ConstantKeys(rule.constants) + UnusedKeysOf(rule.kind) + ScheduleKeys()};
}

// The objects that hold the constants of the rules for whole models, in the order of the rules.
static const std::vector<ObjectGrammar>& HparamGrammars() {
  static const std::vector<ObjectGrammar> grammars = [] {
    std::vector<ObjectGrammar> all;
    for (const RuleInfo& rule : UpdateRules()) {
      if (rule.hparam != nullptr) all.push_back(HparamGrammar(rule));
    }
    return all;
  }();
  return grammars;
}

static ObjectGrammar MakeOptimizerGrammar() {
  std::vector<std::string> types;
  Keys constants;
  for (const RuleInfo& rule : UpdateRules()) {
    if (rule.hparam == nullptr) continue;
    const std::string type = rule.type;
    constants.push_back(Object(rule.hparam, JsonKind::kObject, HparamGrammars()[types.size()],
                               "constants of " + type)
                            .Otherwise("required by type " + type));
    types.push_back(type);
  }
  return {
      "optimizer",
      Keys{Word("type", types,
                "update rule of the dense weights and, at the top level, the default of the "
                "embeddings")
               .Required(),
           Word("update_type", {"Local", "Global", "LazyGlobal"},
                "embedding rows that a step does not touch: Local leaves them unchanged, Global "
                "updates them with a gradient of zero, LazyGlobal does so approximately (for SGD, "
                "AdaGrad and Ftrl all three are the same)")
               .Default("\"Local\""),
           Bool("global_update", "HugeCTR's older key for update_type Global").Default("false")} +
          constants + Keys{Anything("learning_rate", "ignored: the hparam object holds the rate")}};
}

const ObjectGrammar& OptimizerGrammar() {
  static const ObjectGrammar grammar = MakeOptimizerGrammar();
  return grammar;
}

}  // namespace cistern::model::grammar
