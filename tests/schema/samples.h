// One value of every kind of frame, request and reply, with every field set, for round trips, golden bytes, mutations
// and the fuzz corpora.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "schema/control/control.h"
#include "schema/frame/frame.h"

namespace tg::schema {

inline constexpr FrameHeader kSampleHeader{0x0123456789abcdef, 1, 4096};

std::vector<FrameBody> sample_bodies();
std::vector<Request> sample_requests();
std::vector<Reply> sample_replies();
Outcome sample_outcome(double first);  // its fields ascend from this by one
ForecastReply sample_forecast();
Examination sample_examination();
Diagnosis sample_diagnosis();

std::string_view frame_name(const FrameBody& body);

// Every field as text, floats by their bits: two values are equal exactly if these are.
std::string describe(const FrameBody& body);

std::vector<std::byte> bytes_of(std::span<const std::byte> bytes);
std::span<const std::byte> bytes_of(const std::string& bytes);

}  // namespace tg::schema
