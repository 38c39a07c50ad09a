// Any bytes as a node's answer: what decode_reply takes, tgctl can show in every form that it has, at any width.
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

#include "ctl/fetch/fetch_source.h"
#include "ctl/format/doctor_report.h"
#include "ctl/format/progress.h"
#include "ctl/format/status_json.h"
#include "ctl/format/status_text.h"
#include "ctl/plan/plan_report.h"
#include "kernels/base/check.h"
#include "schema/control/control.h"

namespace {

using namespace tg;
using namespace tg::ctl;

constexpr std::int64_t kNowMs = 1'700'000'000'000;

void show(const schema::RunStatus& run, const schema::MeshStatus& mesh) {
  ProgressLine progress;
  LineThrottle throttle;
  for (const std::size_t columns : {kMinColumns, kColumns, kAnyColumns}) {
    (void)format_run(run, kNowMs, columns);
    (void)progress.update(run, kNowMs, columns);
    (void)preparing_line(mesh, run, kNowMs, columns);
    (void)throttle.due(run, kNowMs);
  }
  (void)seconds_left(run, kNowMs);
  for (const bool partial : {false, true})
    if (const auto source = choose_fetch_source(run, mesh.node, partial)) TG_CHECK(!source->nodes.empty());
}

void show(const schema::MeshStatus& mesh) {
  (void)unavailable_nodes(mesh);
  (void)format_status_json(mesh, kNowMs, 2);
  (void)format_list_json(mesh.runs, kNowMs, -1);
  for (const std::size_t columns : {kMinColumns, kColumns, kAnyColumns}) {
    (void)format_mesh(mesh, kNowMs, columns);
    (void)format_runs(mesh.runs, kNowMs, columns);
  }
  for (const schema::RunStatus& run : mesh.runs) show(run, mesh);
}

void show(const schema::StartReply& plan) {
  (void)format_plan(plan);
  (void)speed_up_warning(plan);
}

void show(const schema::ForecastReply& forecast) {
  (void)format_forecast(forecast);
  (void)format_forecast_json(forecast);
}

void show(const schema::Diagnosis& diagnosis) {
  (void)format_diagnosis(diagnosis);
  (void)format_diagnosis_json(diagnosis);
  (void)all_pass(diagnosis);
}

void show(const auto&) {}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Result<schema::Reply> reply = schema::decode_reply(std::as_bytes(std::span(data, size)));
  if (reply) std::visit([](const auto& body) { show(body); }, reply->body);
  return 0;
}
