// One event, one line, logfmt: ts=... level=... node=... event=... key=value..., or a JSON object with time, level,
// node, event and the fields, whose numbers are numbers; on stderr, and to a sink (a run's log file) where one is set.
// Stable event names, so that people can grep. Any thread may log; a line is written whole. No thread waits for the
// reader of stderr (line_writer.h): lines that it does not take are lost, and event=log-lines-lost says how many.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <mutex>
#include <string>
#include <string_view>

#include "kernels/base/line_writer.h"
#include "kernels/base/words.h"

namespace tg {

enum class LogLevel : std::uint8_t { kDebug, kInfo, kWarning, kError };
constexpr auto words_of(LogLevel) { return words("debug", "info", "warning", "error"); }

enum class LogFormat : std::uint8_t { kText, kJson };
constexpr auto words_of(LogFormat) { return words("text", "json"); }

struct LogField {
  LogField(std::string_view k, std::string_view v) : key(k), value(v) {}
  LogField(std::string_view k, const std::string& v) : key(k), value(v) {}
  LogField(std::string_view k, const char* v) : key(k), value(v) {}
  LogField(std::string_view k, double v);
  LogField(std::string_view k, std::integral auto v) : key(k), value(std::to_string(v)), number(true) {}
  std::string_view key;
  std::string value;
  bool number = false;
};

class Log {
 public:
  using Sink = std::function<void(std::string_view line)>;  // line without its newline; called under the log's lock

  Log(std::string node, LogLevel lowest, LogFormat format = LogFormat::kText);

  void write(LogLevel level, std::string_view event, std::initializer_list<LogField> fields);
  void debug(std::string_view event, std::initializer_list<LogField> fields) { write(LogLevel::kDebug, event, fields); }
  void info(std::string_view event, std::initializer_list<LogField> fields) { write(LogLevel::kInfo, event, fields); }
  void warning(std::string_view event, std::initializer_list<LogField> fields) {
    write(LogLevel::kWarning, event, fields);
  }
  void error(std::string_view event, std::initializer_list<LogField> fields) { write(LogLevel::kError, event, fields); }

  // From now on lines go to this sink too; an empty function ends that.
  void set_sink(Sink sink);
  // The note for a sink that may lose lines.
  LineWriter::Note lost_note() const;

 private:
  const std::string node_;
  const LogLevel lowest_;
  const LogFormat format_;
  LineWriter stderr_;
  std::mutex mutex_;
  Sink sink_;
};

// The time as RFC 3339, UTC, with milliseconds: 2017-12-04T09:00:00.000Z.
std::string format_utc(std::int64_t unix_ms);
std::int64_t unix_time_ms();

}  // namespace tg
