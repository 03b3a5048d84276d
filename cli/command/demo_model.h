// The model of `cistern demo`: a DeepFM in HugeCTR's JSON, made to fit the demo's data.
#pragma once

#include <cstdint>
#include <string>

namespace cistern {

struct DemoModelShape {
  std::string train, test;    // file lists
  std::string check = "Sum";  // of the Norm files
  bool wide_keys = false;     // 64-bit keys
  uint32_t dense_dim = 0;
  uint32_t slot_num = 1;
  uint32_t max_keys = 1;  // of one sample
};

// The text of a model file. Embedding rows hold 8 floats for the second-order part and the DNN, and
// one for the first-order part; without dense features their branch is left out.
std::string DemoModel(const DemoModelShape& shape);

}  // namespace cistern
