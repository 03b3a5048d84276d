#include "common/value/accessor/embedding_accessor.h"

#include "common/value/accessor/row_parts.h"
#include "common/value/old_rows.h"
#include "common/value/value_layout.h"

namespace cistern {
namespace {

// Rows of another dim.
class OldEmbeddings : public OldRows {
 public:
  explicit OldEmbeddings(RuleKind kind) : kind_(kind) {}

  std::optional<OldForm> FormOf(size_t cells, bool, CtrFields) const override {
    const std::optional<uint32_t> dim = DimOfPart(kind_, cells);
    if (!dim.has_value()) return std::nullopt;
    return OldForm{{}, *dim, true};
  }

 private:
  const RuleKind kind_;
};

// Makes weights and state the part that a value may lack, after a count.
void MakeOptional(ValueShape* shape) {
  for (ValueField& field : shape->fields) {
    ++field.first;
    field.in_embedx = true;
  }
  shape->fields.insert(shape->fields.begin(), {.name = "count", .first = 0});
  ++shape->weight_index;
  ++shape->state_index;
  ++shape->full_floats;
  shape->short_floats = 1;
  shape->embedx_is_optional = true;
  shape->starts_with_embedx = false;
}

}  // namespace

ValueShape EmbeddingAccessor::ShapeOf(const v1::TableSpec& spec, const RuleParams& rule) const {
  const uint32_t dim = spec.dim(), state = RuleStateFloats(rule.kind, dim);
  ValueShape shape;
  shape.state_index = dim;
  shape.state_floats = RowStateFloats(rule, dim);
  shape.full_floats = shape.short_floats = dim + shape.state_floats;
  shape.fields = {
      {.name = "w", .first = 0, .count = dim, .role = FieldRole::kWeights, .weights = dim},
      {.name = "state", .first = dim, .count = state, .role = FieldRole::kState, .weights = dim}};
  if (shape.state_floats > state) {
    shape.fields.push_back({.name = "last_step", .first = dim + state, .role = FieldRole::kFresh});
  }
  if (spec.bounds().admit_after() > 0) {
    MakeOptional(&shape);
  } else if (CountsSightings(spec.bounds())) {
    shape.fields.push_back({.name = "count", .first = shape.full_floats});
    shape.short_floats = ++shape.full_floats;
  }
  return shape;
}

std::unique_ptr<OldRows> EmbeddingAccessor::MakeOldRows(const ValueLayout& layout) const {
  return std::make_unique<OldEmbeddings>(layout.rule().kind);
}

}  // namespace cistern
