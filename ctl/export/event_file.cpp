#include "ctl/export/event_file.h"

#include <array>
#include <bit>

namespace tg::ctl {
namespace {

enum Wire : std::uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

constexpr std::array<std::uint32_t, 256> make_crc_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < table.size(); ++i) {
    std::uint32_t rest = i;
    for (int bit = 0; bit < 8; ++bit) rest = (rest >> 1) ^ ((rest & 1) != 0 ? 0x82f63b78u : 0);
    table[i] = rest;
  }
  return table;
}
constexpr std::array<std::uint32_t, 256> kCrcTable = make_crc_table();

template <class Word>
void put_word(std::string& to, Word word) {
  for (std::size_t i = 0; i < sizeof(Word); ++i) to += static_cast<char>(word >> (8 * i));
}

void put_varint(std::string& to, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) to += static_cast<char>(value | 0x80);
  to += static_cast<char>(value);
}

void put_key(std::string& to, int field, Wire wire) { to += static_cast<char>((field << 3) | wire); }

void put_bytes(std::string& to, int field, std::string_view bytes) {
  put_key(to, field, kBytes);
  put_varint(to, bytes.size());
  to += bytes;
}

void put_time(std::string& to, std::int64_t time_ms) {
  put_key(to, 1, kFixed64);
  put_word(to, std::bit_cast<std::uint64_t>(static_cast<double>(time_ms) / 1000));
}

// TensorBoard's masked checksum, which keeps the checksum of records inside a record apart from its own.
std::uint32_t masked(std::uint32_t crc) { return std::rotr(crc, 15) + 0xa282ead8u; }

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  std::uint32_t rest = ~0u;
  for (const char byte : bytes) rest = (rest >> 8) ^ kCrcTable[(rest ^ static_cast<unsigned char>(byte)) & 0xff];
  return ~rest;
}

std::string event_record(std::string_view event) {
  std::string record;
  put_word(record, static_cast<std::uint64_t>(event.size()));
  put_word(record, masked(crc32c(record)));
  record += event;
  put_word(record, masked(crc32c(event)));
  return record;
}

std::string version_event(std::int64_t time_ms) {
  std::string event;
  put_time(event, time_ms);
  put_bytes(event, 3, "brain.Event:2");
  return event;
}

std::string event_of(const MetricLine& line) {
  std::string event, summary;
  put_time(event, line.time_ms);
  put_key(event, 2, kVarint);
  put_varint(event, line.step);
  for (const Metric& metric : line.metrics) {
    if (!metric.number || metric.name == "step") continue;
    std::string value;
    put_bytes(value, 1, metric.name);
    put_key(value, 2, kFixed32);
    put_word(value, std::bit_cast<std::uint32_t>(static_cast<float>(*metric.number)));
    put_bytes(summary, 1, value);
  }
  put_bytes(event, 5, summary);
  return event;
}

Status write_events(const MetricsFile& from, PartFile& to) {
  std::string records;
  const auto write = [&]() -> Status {
    Status written = to.write(records);
    records.clear();
    return written;
  };
  bool first = true;
  const Status read = for_each_line(from, [&](const MetricLine& line) -> Status {
    if (std::exchange(first, false)) records += event_record(version_event(line.time_ms));
    records += event_record(event_of(line));
    return records.size() < kWriteBytes ? Status() : write();
  });
  return read ? write() : read;
}

}  // namespace tg::ctl
