// The model file of `cistern demo`: a DeepFM in HugeCTR's JSON, fitted to the demo's data.
#pragma once

#include <cstdint>
#include <string>

namespace cistern::app {

struct DemoModelShape {
  std::string train, test;    // file lists
  std::string check = "Sum";  // "check" of the Data layer
  bool wide_keys = false;     // 64-bit keys
  uint32_t dense_dim = 0;
  uint32_t slot_num = 1;
  uint32_t max_keys = 1;  // most keys of one sample
};

// The text of the model file. An embedding row has 8 floats for the second-order part and the DNN,
// and one for the first-order part. Without dense features, the dense branch is left out.
std::string DemoModel(const DemoModelShape& shape);

}  // namespace cistern::app
