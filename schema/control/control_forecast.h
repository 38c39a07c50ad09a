// Measurements and predictions between value (forecast.h) and Cap'n Proto form (forecast.capnp). Used by control.cpp
// only. The take_* functions throw what schema/wire.h says.
#pragma once

#include "schema/control/forecast.h"
#include "schema/forecast.capnp.h"

namespace tg::schema {

// Finite, from 0 to most.
double checked_real(double value, double most, const char* field);

void put_outcome(wire::Outcome::Builder to, const Outcome& outcome);
Outcome take_outcome(wire::Outcome::Reader from);
void put_bench(wire::Bench::Builder to, const BenchReply& bench);
BenchReply take_bench(wire::Bench::Reader from);
void put_forecast(wire::ForecastRequest::Builder to, const ForecastRequest& request);
ForecastRequest take_forecast(wire::ForecastRequest::Reader from);
void put_forecast(wire::Forecast::Builder to, const ForecastReply& reply);
ForecastReply take_forecast(wire::Forecast::Reader from);

}  // namespace tg::schema
