// Writes metrics.jsonl as a TensorBoard event file: a record with the version, then one for each line, with its step,
// its time and a scalar for each number in it. Main thread only, except for the pure functions.
//
//   file   = record*
//   record = length:u64 crc(length):u32 event[length] crc(event):u32     little-endian; crc is a masked CRC-32C
//   event  = 1: seconds since 1970, double; 2: step, varint; 3: version, string; or 5: summary
//   summary = (1: value)*,   value = 1: name, string; 2: number, float   Protocol Buffers; "n:" is the field's number
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ctl/export/metric_lines.h"
#include "ctl/fetch/part_file.h"

namespace tg::ctl {

std::uint32_t crc32c(std::string_view bytes);
std::string event_record(std::string_view event);  // the record with this event
std::string version_event(std::int64_t time_ms);
std::string event_of(const MetricLine& line);

Status write_events(const MetricsFile& from, PartFile& to);

}  // namespace tg::ctl
