// Models that are too large for the number of a table's columns.
#pragma once

#include "common/base/status.h"
#include "worker/model/config/model_template.h"

namespace cistern::app {

// kInvalidArgument, with the kinds that fit, if the network has more than 100 million parameters:
// those of dcnv2 and dlrm grow with the square of the columns.
absl::Status CheckModelSize(model::ModelKind kind, const model::TemplateSizes& sizes,
                            const model::TemplateData& data);

}  // namespace cistern::app
