#include "daemon/step/threads/timeline.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "engine/storage/atomic_file.h"

namespace tg::daemon {

void Timeline::start(std::string member, std::size_t rank) {
  const std::lock_guard lock(mutex_);
  member_ = std::move(member);
  rank_ = rank;
  origin_ = Clock::now();
  origin_unix_us_ =
      std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch())
          .count();
  spans_.clear();
  left_out_ = 0;
  enabled_ = true;
}

void Timeline::add(Track track, const char* name, std::uint64_t step, Clock::time_point begin, Clock::time_point end,
                   Detail detail) {
  using std::chrono::microseconds;
  const std::lock_guard lock(mutex_);
  if (spans_.size() >= kMaxSpans) {
    ++left_out_;
    return;
  }
  spans_.push_back({name, step, std::chrono::duration_cast<microseconds>(begin - origin_).count(),
                    std::chrono::duration_cast<microseconds>(end - begin).count(), track, detail});
}

Status Timeline::write(const std::string& path) const {
  const std::lock_guard lock(mutex_);
  engine::AtomicFile to(path);
  if (Status opened = to.open(); !opened.ok()) return opened;
  // Row by row: all of them as one document would take many times the memory of the spans.
  std::string text = nlohmann::ordered_json({{"displayTimeUnit", "ms"},
                                             {"otherData", {{"member", member_}, {"spans_left_out", left_out_}}}})
                         .dump();
  text.back() = ',';
  text += "\"traceEvents\":[\n";
  Status written;
  const auto flush_above = [&](std::size_t bytes) {
    if (text.size() <= bytes) return;
    if (written.ok()) written = to.write(text.data(), text.size());
    text.clear();
  };
  const auto row = [&](const nlohmann::ordered_json& event, const char* end = ",\n") {
    text += event.dump() + end;
    flush_above(64 * 1024);
  };
  const auto name_row = [&](const char* what, int thread, const std::string& name) -> nlohmann::ordered_json {
    return {{"ph", "M"}, {"name", what}, {"pid", rank_}, {"tid", thread}, {"args", {{"name", name}}}};
  };
  for (const Span& span : spans_) {
    nlohmann::ordered_json details = {{"step", span.step}};
    if (span.detail.bucket >= 0) details["bucket"] = span.detail.bucket;
    if (span.detail.bytes > 0) details["bytes"] = span.detail.bytes;
    row({{"ph", "X"},
         {"name", span.name},
         {"pid", rank_},
         {"tid", static_cast<int>(span.track)},
         {"ts", origin_unix_us_ + span.begin_us},
         {"dur", span.duration_us},
         {"args", std::move(details)}});
  }
  int last = static_cast<int>(Track::kCompute);
  for (const Span& span : spans_) last = std::max(last, static_cast<int>(span.track));
  for (int track = static_cast<int>(Track::kFirstHelper); track <= last; ++track)
    row(name_row("thread_name", track, "exchange helper " + std::to_string(track - static_cast<int>(Track::kCompute))));
  row(name_row("thread_name", static_cast<int>(Track::kNode), "exchange"));
  row(name_row("thread_name", static_cast<int>(Track::kCompute), "compute"));
  row(name_row("process_name", 0, member_), "]}\n");
  flush_above(0);
  if (!written.ok()) return written;
  return to.commit();
}

}  // namespace tg::daemon
