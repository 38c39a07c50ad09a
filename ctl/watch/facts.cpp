#include "ctl/watch/facts.h"

#include <algorithm>
#include <utility>

#include "ctl/format/status_text.h"

namespace tg::ctl {

bool LogTail::add(const schema::SliceReply& slice) {
  node = slice.node;
  problem.clear();
  if (offset > slice.total_bytes) {  // first request, or the log was rewritten
    offset = slice.total_bytes - std::min<std::uint64_t>(slice.total_bytes, schema::kLogSliceBytes);
    text.clear();
    return offset < slice.total_bytes;
  }
  text += slice.data;
  if (text.size() > 2 * schema::kLogSliceBytes) text.erase(0, text.size() - schema::kLogSliceBytes);
  offset += slice.data.size();
  return !slice.data.empty() && offset < slice.total_bytes;
}

void Facts::update(schema::MeshStatus answer) {
  mesh = std::move(answer);
  mesh_ms = now_ms;
  error.clear();
  sort_active_first(mesh.runs);
  std::map<std::string, RunHistory> known = std::exchange(histories, {});
  for (const schema::RunStatus& run : mesh.runs) {
    RunHistory course = std::move(known[run.id]);
    if (run.lineage != course.lineage || run.step < course.step) course = {.lineage = run.lineage};
    if (course.first_step == 0) course.first_step = run.step;
    if (run.step > course.step) course.loss.add(run.step, run.loss);
    if (run.evaluated && run.evaluation_step > course.evaluation_step) {
      course.accuracy.add(run.evaluation_step, run.evaluation_accuracy);
      course.evaluation_step = run.evaluation_step;
    }
    course.step = run.step;
    histories[run.id] = std::move(course);
  }
}

void Facts::add_history(const std::string& run, const Curves& curves) {
  if (curves.loss.empty()) return;
  RunHistory& course = histories[run];
  const RunHistory seen = std::exchange(course, {.loss = curves.loss,
                                                 .accuracy = curves.accuracy,
                                                 .first_step = 1,
                                                 .step = curves.loss.last_step(),
                                                 .evaluation_step = curves.accuracy.last_step(),
                                                 .lineage = course.lineage,
                                                 .history_tries = kMaxHistoryTries});
  // The newest lines may not be written yet.
  if (seen.step > course.step) {
    if (!seen.loss.empty()) course.loss.add(seen.step, seen.loss.last());
    course.step = seen.step;
  }
  if (seen.evaluation_step > course.evaluation_step) {
    course.accuracy.add(seen.evaluation_step, seen.accuracy.last());
    course.evaluation_step = seen.evaluation_step;
  }
}

}  // namespace tg::ctl
