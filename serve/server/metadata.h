// What the server reports about itself and its model, in both protocols.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "serve/predictor/predictor.h"
#include "serve/server/tensor.h"

namespace cistern::serve {

inline constexpr char kServerName[] = "cistern";
inline constexpr char kPlatform[] = "cistern";

struct ServerMetadata {
  std::string name, version;
  std::vector<std::string> extensions;
};

struct ModelMetadata {
  std::string name, version;  // version: the commit that is served
  std::vector<TensorSpec> inputs, outputs;
  // By name: what Triton's form of the metadata says besides: max_samples, commit, and of a model
  // that reads rows of text its text_columns and the hash of its recipe.
  std::vector<std::pair<std::string, std::string>> parameters;
};

// extensions: of the protocol that asks.
ServerMetadata DescribeServer(std::vector<std::string> extensions);

// The named inputs of samples.h, `text` last, if the model reads it: then all are optional, because
// a request has one form. And these outputs:
//   probability  FP32 [b, label_dim]
//   commit       INT64 [1]: the commit that made the predictions
//   unseen_keys  INT64 [1]: occurrences of keys that the model has no row for; only if asked for
//   OUTPUT0      FP32 [b * label_dim]: probability under HugeCTR's name; only if asked for
ModelMetadata DescribeModel(const Predictor& predictor);

inline constexpr char kProbability[] = "probability";
inline constexpr char kCommit[] = "commit";
inline constexpr char kUnseenKeys[] = "unseen_keys";
inline constexpr char kOutput0[] = "OUTPUT0";

// The bodies of HTTP replies.
std::string ServerMetadataJson(const ServerMetadata& server);
std::string ModelMetadataJson(const ModelMetadata& model);
// Triton's form of the same, which some of its clients ask for before they predict.
// recipe: of rows of text; null: none.
std::string ModelConfigJson(const ModelMetadata& model);
// The name of a data type there: "TYPE_FP32", and TYPE_STRING for BYTES.
std::string ConfigTypeOf(const std::string& datatype);

}  // namespace cistern::serve
