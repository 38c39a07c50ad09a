#include "kernels/base/log.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <ctime>

#include "kernels/base/utf8.h"

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

void append_json_text(std::string& line, std::string_view text) {
  line += '"';
  while (!text.empty()) {
    const std::size_t bytes = utf8_bytes(text);
    const auto first = static_cast<unsigned char>(text[0]);
    if (bytes == 0) {
      line += "\\ufffd";
    } else if (first < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", first);
      line += escape;
    } else {
      if (first == '"' || first == '\\') line += '\\';
      line += text.substr(0, bytes);
    }
    text.remove_prefix(bytes == 0 ? 1 : bytes);
  }
  line += '"';
}

void append_json(std::string& line, const LogField& field) {
  line += line.empty() ? '{' : ',';
  append_json_text(line, field.key);
  line += ':';
  // JSON has no inf and no nan.
  if (field.number && field.value.back() >= '0' && field.value.back() <= '9') {
    line += field.value;
  } else {
    append_json_text(line, field.value);
  }
}

std::string json_line(LogLevel level, const std::string& node, std::string_view event,
                      std::initializer_list<LogField> fields) {
  std::string line;
  append_json(line, {"time", format_utc(unix_time_ms())});
  append_json(line, {"level", to_word(level)});
  append_json(line, {"node", node});
  append_json(line, {"event", event});
  for (const LogField& field : fields) append_json(line, field);
  return line + '}';
}

std::string text_line(LogLevel level, const std::string& node, std::string_view event,
                      std::initializer_list<LogField> fields) {
  std::string line = "ts=" + format_utc(unix_time_ms());
  line += " level=";
  line += to_word(level);
  line += " node=" + node + " event=";
  line += event;
  for (const LogField& field : fields) {
    line += ' ';
    line += field.key;
    line += '=';
    append_value(line, field.value);
  }
  return line;
}

std::string line_of(LogFormat format, LogLevel level, const std::string& node, std::string_view event,
                    std::initializer_list<LogField> fields) {
  return format == LogFormat::kJson ? json_line(level, node, event, fields) : text_line(level, node, event, fields);
}

}  // namespace

LogField::LogField(std::string_view k, double v) : key(k), number(true) {
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

Log::Log(std::string node, LogLevel lowest, LogFormat format)
    : node_(std::move(node)), lowest_(lowest), format_(format), stderr_(STDERR_FILENO, lost_note()) {}

LineWriter::Note Log::lost_note() const {
  return [node = node_, format = format_](std::uint64_t lost) {
    return line_of(format, LogLevel::kWarning, node, "log-lines-lost", {{"lines", lost}});
  };
}

void Log::write(LogLevel level, std::string_view event, std::initializer_list<LogField> fields) {
  if (level < lowest_) return;
  std::string line = line_of(format_, level, node_, event, fields);
  const std::lock_guard lock(mutex_);
  if (sink_) sink_(line);
  stderr_.write(std::move(line));
}

void Log::set_sink(Sink sink) {
  const std::lock_guard lock(mutex_);
  sink_.swap(sink);  // the old sink is destroyed outside the lock: it may wait for its last lines
}

}  // namespace tg
