// What `plan` prints: for people tables, for programs JSON with stable keys. Pure.
#pragma once

#include <string>

#include "schema/control/forecast.h"

namespace tg::ctl {

inline constexpr int kPlanJsonVersion = 3;

// What takes the most of a step: "computing", "link" or "processor".
std::string bound_of(const schema::Outcome& step);
std::string format_forecast(const schema::ForecastReply& reply);
std::string format_forecast_json(const schema::ForecastReply& reply);

}  // namespace tg::ctl
