#include "common/value/update_rule.h"

#include "common/base/check.h"

namespace cistern {

absl::Span<const RuleInfo> UpdateRules() {
  static constexpr RuleInfo kRules[] = {
#define CISTERN_RULE(Rule) Rule::Info(),
      CISTERN_UPDATE_RULES(CISTERN_RULE)
#undef CISTERN_RULE
  };
  return kRules;
}

const RuleInfo& InfoOf(RuleKind kind) {
  for (const RuleInfo& rule : UpdateRules()) {
    if (rule.kind == kind) return rule;
  }
  CISTERN_CHECK(false);
  return UpdateRules().front();
}

const RuleInfo* FindUpdateRule(absl::string_view type) {
  for (const RuleInfo& rule : UpdateRules()) {
    if (type == rule.type) return &rule;
  }
  return nullptr;
}

}  // namespace cistern
