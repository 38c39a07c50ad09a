#include "kernels/base/log.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <ctime>

namespace tg {
namespace {

void append_value(std::string& line, std::string_view value) {
  const bool plain = !value.empty() && value.find_first_of(" \"=\n\r\t") == std::string_view::npos;
  if (plain) {
    line += value;
    return;
  }
  line += '"';
  for (const char c : value) {
    if (c == '"' || c == '\\') line += '\\';
    line += (c == '\n' || c == '\r' || c == '\t') ? ' ' : c;
  }
  line += '"';
}

std::string head(LogLevel level, const std::string& node, std::string_view event) {
  std::string line = "ts=" + format_utc(unix_time_ms());
  line += " level=";
  line += to_word(level);
  line += " node=" + node + " event=";
  line += event;
  return line;
}

}  // namespace

LogField::LogField(std::string_view k, double v) : key(k) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", v);
  value = text;
}

std::int64_t unix_time_ms() {
  using namespace std::chrono;
  return duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
}

std::string format_utc(std::int64_t unix_ms) {
  const std::time_t seconds = unix_ms / 1000;
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[64];
  const std::size_t length = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
  std::snprintf(text + length, sizeof text - length, ".%03dZ", static_cast<int>(unix_ms % 1000));
  return text;
}

Log::Log(std::string node, LogLevel lowest)
    : node_(std::move(node)), lowest_(lowest), stderr_(STDERR_FILENO, lost_note()) {}

LineWriter::Note Log::lost_note() const {
  return [node = node_](std::uint64_t lost) {
    return head(LogLevel::kWarning, node, "log-lines-lost") + " lines=" + std::to_string(lost);
  };
}

void Log::write(LogLevel level, std::string_view event, std::initializer_list<LogField> fields) {
  if (level < lowest_) return;
  std::string line = head(level, node_, event);
  for (const LogField& field : fields) {
    line += ' ';
    line += field.key;
    line += '=';
    append_value(line, field.value);
  }
  const std::lock_guard lock(mutex_);
  if (sink_) sink_(line);
  stderr_.write(std::move(line));
}

void Log::set_sink(Sink sink) {
  const std::lock_guard lock(mutex_);
  sink_.swap(sink);  // the old sink is destroyed outside the lock: it may wait for its last lines
}

}  // namespace tg
