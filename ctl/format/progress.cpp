#include "ctl/format/progress.h"

#include "ctl/format/table.h"

namespace tg::ctl {
namespace {

constexpr std::int64_t kWindowMs = 20'000;
constexpr std::int64_t kLeastWindowMs = 1'000;  // a shorter one gives no rate worth a forecast
constexpr std::int64_t kPlainMs = 10'000;
constexpr std::uint64_t kPlainSteps = 100;

}  // namespace

std::string ProgressLine::update(const schema::RunStatus& run, std::int64_t now_ms) {
  window_.push_back({now_ms, run.step});
  while (window_.size() > 2 && now_ms - window_.front().at_ms > kWindowMs) window_.pop_front();

  std::string line(to_word(run.state));
  line += "  step " + std::to_string(run.step) + "/" + std::to_string(run.steps);
  if (run.step > 0) line += "  loss " + format_fixed(run.loss, 4);
  if (run.evaluated) line += "  accuracy " + format_percent(run.evaluation_accuracy, 2);
  if (run.step > 0) {
    line += "  " + format_fixed(run.samples_per_second, 0) + " samples/s";
    line += "  " + format_fixed(run.sent_bits_per_parameter, 2) + " bits/parameter";
  }
  const Observation& first = window_.front();
  const double seconds = static_cast<double>(now_ms - first.at_ms) / 1000;
  if (!schema::is_final(run.state) && run.step > first.step && now_ms - first.at_ms >= kLeastWindowMs) {
    const double rate = static_cast<double>(run.step - first.step) / seconds;
    const std::uint64_t left = run.steps > run.step ? run.steps - run.step : 0;
    line += "  ETA " + format_span(static_cast<double>(left) / rate);
  }
  return line;
}

bool PlainPace::due(const schema::RunStatus& run, std::int64_t now_ms) {
  const bool due =
      first_ || run.state != last_state_ || now_ms - last_ms_ >= kPlainMs || run.step >= last_step_ + kPlainSteps;
  if (!due) return false;
  first_ = false;
  last_ms_ = now_ms;
  last_step_ = run.step;
  last_state_ = run.state;
  return true;
}

std::string fit_line(std::string line, std::size_t columns) {
  std::size_t width = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if ((static_cast<unsigned char>(line[i]) & 0xc0) == 0x80) continue;
    if (width++ == columns) {
      line.resize(i);
      break;
    }
  }
  return line;
}

}  // namespace tg::ctl
