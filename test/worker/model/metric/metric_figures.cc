// Prints the metrics of drawn scores (drawn_scores.h) as JSON, for scikit_learn_test.py.
//
//   metric_figures '{"seed": 1, "samples": 10000000}'
#include <iostream>
#include <nlohmann/json.hpp>

#include "test/worker/model/metric/figures.h"

int main(int count, char** words) {
  if (count != 2) {
    std::cerr << "metric_figures '{\"seed\": 1, \"samples\": 1000}'\n";
    return 2;
  }
  const nlohmann::json drawn = nlohmann::json::parse(words[1], nullptr, false);
  if (!drawn.is_object()) return 2;
  nlohmann::json figures;
  for (const cistern::model::MetricValue& value :
       cistern::model::FiguresOf(cistern::model::DrawnScoresOf(drawn))) {
    figures[value.name] = value.value ? nlohmann::json(*value.value) : nlohmann::json();
  }
  std::cout << figures << "\n";
  return 0;
}
