// The grammar of the optimizer object, at the top level and inside an embedding layer.
#include "worker/model/config/grammar_keys.h"

namespace cistern::grammar {

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

static KeyGrammar LearningRate() {
  return Number("learning_rate", "learning rate after the warm-up").Required();
}
Keys AdamConstantKeys() {
  return {
      Number("beta1", "decay of the mean of gradients (Adam)").Default("0.9").Below(1),
      Number("beta2", "decay of the mean of squared gradients (Adam)").Default("0.999").Below(1),
      Number("epsilon", "added to the square root (Adam, AdaGrad)").Default("1e-7").Above(0)};
}

static const ObjectGrammar& AdamGrammar() {
  static const ObjectGrammar grammar{"adam_hparam",
                                     Keys{LearningRate()} + AdamConstantKeys() + ScheduleKeys()};
  return grammar;
}
static const ObjectGrammar& SgdGrammar() {
  static const ObjectGrammar grammar{
      "sgd_hparam",
      Keys{LearningRate(),
           Bool("atomic_update",
                "unordered sums in HugeCTR; no effect: sums here always have a fixed order")
               .Default("false")} +
          ScheduleKeys()};
  return grammar;
}

static Keys MomentumKeys() {
  return Keys{LearningRate(),
              Number("momentum_factor", "fraction of the previous step that a step keeps")
                  .Default("0")
                  .Below(1)} +
         ScheduleKeys();
}
static const ObjectGrammar& MomentumGrammar() {
  static const ObjectGrammar grammar{"momentum_sgd_hparam", MomentumKeys()};
  return grammar;
}
static const ObjectGrammar& NesterovGrammar() {
  static const ObjectGrammar grammar{"nesterov_hparam", MomentumKeys()};
  return grammar;
}
static const ObjectGrammar& AdaGradGrammar() {
  static const ObjectGrammar grammar{
      "adagrad_hparam",
      Keys{LearningRate(),
           Number("initial_accu_value", "initial value of the sums of squares").Default("0"),
           Number("epsilon", "added to the square root").Default("1e-7").Above(0)} +
          ScheduleKeys()};
  return grammar;
}
static const ObjectGrammar& FtrlGrammar() {
  static const ObjectGrammar grammar{
      "ftrl_hparam",
      Keys{LearningRate(), Number("beta", "added to the square root").Default("1").Above(0),
           Number("lambda1", "L1 penalty: weights with |z| <= lambda1 are zero").Default("0"),
           Number("lambda2", "L2 penalty").Default("0")} +
          ScheduleKeys()};
  return grammar;
}

const ObjectGrammar& OptimizerGrammar() {
  const auto constants = [](const char* key, const ObjectGrammar& grammar,
                            const std::string& type) {
    return Object(key, JsonKind::kObject, grammar, "constants of " + type)
        .Otherwise("required by type " + type);
  };
  static const ObjectGrammar grammar{
      "optimizer",
      {Word("type", {"Adam", "SGD", "MomentumSGD", "Nesterov", "AdaGrad", "Ftrl"},
            "update rule of the dense weights and, at the top level, the default of the embeddings")
           .Required(),
       Word("update_type", {"Local", "Global", "LazyGlobal"},
            "embedding rows that a step does not touch: Local leaves them unchanged, Global "
            "updates them with a gradient of zero, LazyGlobal does so approximately (for SGD, "
            "AdaGrad and Ftrl all three are the same)")
           .Default("\"Local\""),
       Bool("global_update", "HugeCTR's older key for update_type Global").Default("false"),
       constants("adam_hparam", AdamGrammar(), "Adam"),
       constants("sgd_hparam", SgdGrammar(), "SGD"),
       constants("momentum_sgd_hparam", MomentumGrammar(), "MomentumSGD"),
       constants("nesterov_hparam", NesterovGrammar(), "Nesterov"),
       constants("adagrad_hparam", AdaGradGrammar(), "AdaGrad"),
       constants("ftrl_hparam", FtrlGrammar(), "Ftrl"),
       Anything("learning_rate", "ignored: the hparam object holds the rate")}};
  return grammar;
}

}  // namespace cistern::grammar
