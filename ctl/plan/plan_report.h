// What `plan` prints: for people tables, for programs JSON with stable keys. Pure.
#pragma once

#include <string>

#include "schema/control/forecast.h"

namespace tg::ctl {

inline constexpr int kPlanJsonVersion = 3;

std::string format_forecast(const schema::ForecastReply& reply);
std::string format_forecast_json(const schema::ForecastReply& reply);

}  // namespace tg::ctl
