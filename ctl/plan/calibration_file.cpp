#include "ctl/plan/calibration_file.h"

#include <nlohmann/json.hpp>
#include <sstream>

#include "ctl/plan/link_rate.h"
#include "schema/limits.h"

namespace tg::ctl {
namespace {

using Json = nlohmann::json;

double mean(const Json& numbers) {
  double sum = 0;
  for (const Json& number : numbers) sum += number.get<double>();
  return numbers.empty() ? 0 : sum / static_cast<double>(numbers.size());
}

schema::MeasuredStep step_of(const Json& json) {
  schema::MeasuredStep step;
  step.model = json.at("model").get<std::string>();
  step.nodes = json.at("nodes").get<std::uint64_t>();
  if (step.nodes < 2 || step.nodes > schema::kMostMembers) throw std::runtime_error("nodes is not from 2 to 127");
  const Result<double> rate = parse_link_mbps(json.at("rate").get<std::string>());
  if (!rate) throw std::runtime_error("rate: " + rate.error().message);
  step.line_mbps = *rate;
  // The lab's nodes share one machine, a thread each at most computes and exchanges.
  step.cores = json.at("cpu_cores").get<double>() / static_cast<double>(step.nodes);
  step.exchange = json.at("exchange").get<std::string>();
  step.coding = json.at("coding").get<std::string>();
  step.zeros = json.at("zeros").get<double>();
  step.cpu_seconds = mean(json.at("cpu_seconds_per_step"));
  step.step_seconds = json.at("step_seconds").at("median").get<double>();
  const bool sane = step.cores >= schema::kLeastCores && step.cores <= schema::kMostCores && step.zeros >= 0 &&
                    step.zeros <= 1 && step.cpu_seconds >= 0 && step.cpu_seconds < schema::kMostReal &&
                    step.step_seconds > 0 && step.step_seconds < schema::kMostReal;
  if (!sane) throw std::runtime_error("a number is out of its range");
  return step;
}

}  // namespace

Result<std::vector<schema::MeasuredStep>> parse_calibration(const std::string& text, const std::string& file) {
  std::vector<schema::MeasuredStep> steps;
  std::istringstream stream(text);
  while (stream >> std::ws && !stream.eof()) {
    const std::string place = file + ": object " + std::to_string(steps.size() + 1) + ": ";
    try {
      Json json;
      stream >> json;
      steps.push_back(step_of(json));
    } catch (const std::exception& error) {  // of the JSON library, or ours
      return Error{ErrorKind::kUsage, place + error.what() + "; wanted is what tests/lab/exchange --json prints"};
    }
    if (steps.size() > schema::kMostMeasuredSteps)
      return Error{ErrorKind::kUsage,
                   file + " has more than " + std::to_string(schema::kMostMeasuredSteps) + " measured steps"};
  }
  if (steps.empty()) return Error{ErrorKind::kUsage, file + " has no measured step"};
  return steps;
}

}  // namespace tg::ctl
