#include "engine/storage/safetensors_header.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>

namespace tg::engine {
namespace {

constexpr std::string_view kMetadataKey = "__metadata__";

using Json = nlohmann::json;

// What a header has that the format does not: a phrase that completes "its header has ".
struct Odd {
  std::string what;
  bool other_type = false;  // it is a tensor of another type
};

// Refuses excess depth and repeated names as they appear.
Json parse(std::string_view text) {
  constexpr int kDepth = 3;  // a list in a tensor in the header
  std::array<std::set<std::string>, kDepth> names;
  return Json::parse(text.begin(), text.end(), [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::object_start || event == Json::parse_event_t::array_start) {
      if (depth >= kDepth) throw Odd{"lists or objects too deep inside each other"};
      names[static_cast<std::size_t>(depth)].clear();
    }
    if (event != Json::parse_event_t::key) return true;
    if (!names[static_cast<std::size_t>(depth) - 1].insert(parsed.get<std::string>()).second)
      throw Odd{"\"" + parsed.get<std::string>() + "\" twice"};
    return true;
  });
}

std::vector<std::uint64_t> numbers_of(const Json& list, std::size_t most) {
  const auto odd = [](const Json& one) { return !one.is_number_unsigned() || one.get<std::uint64_t>() > INT64_MAX; };
  if (!list.is_array() || list.size() > most || std::ranges::any_of(list, odd))
    throw Odd{"something else where " + std::to_string(most) + " sizes at most belong"};
  return list.get<std::vector<std::uint64_t>>();
}

TensorEntry tensor_of(const std::string& name, const Json& json) {
  for (const char* const field : {"dtype", "shape", "data_offsets"})
    if (!json.is_object() || json.size() != 3 || !json.contains(field))
      throw Odd{"tensor \"" + name + "\", which is not of dtype, shape and data_offsets"};
  if (!json["dtype"].is_string()) throw Odd{"a type that is no text"};
  const auto type = json["dtype"].get<std::string>();
  if (type != "F32" && type != "I64")
    throw Odd{"tensor \"" + name + "\" is " + type + "; float32 is read: save it again as that", true};
  TensorEntry tensor{.name = name, .shape = {}, .counts = type == "I64"};
  for (const std::uint64_t size : numbers_of(json["shape"], kMaxTensorDimensions))
    tensor.shape.push_back(static_cast<std::int64_t>(size));
  const std::vector<std::uint64_t> offsets = numbers_of(json["data_offsets"], 2);
  if (offsets.size() != 2) throw Odd{"data_offsets that are not two numbers"};
  tensor.begin = offsets[0];
  tensor.end = offsets[1];
  return tensor;
}

TensorHeader header_of(const Json& json) {
  if (!json.is_object()) throw Odd{"no object"};
  if (json.size() > kMaxTensors) throw Odd{"too many tensors"};
  TensorHeader header;
  for (const auto& [name, value] : json.items()) {
    if (name != kMetadataKey) {
      header.tensors.push_back(tensor_of(name, value));
      continue;
    }
    if (!value.is_object() || !std::ranges::all_of(value, [](const Json& text) { return text.is_string(); }))
      throw Odd{"metadata that are not texts"};
    header.metadata = value.get<std::map<std::string, std::string>>();
  }
  return header;
}

// Computes the bytes of a shape; false if they exceed `limit`.
bool shape_bytes(const TensorEntry& tensor, std::uint64_t limit, std::uint64_t& bytes) {
  const std::vector<std::int64_t>& shape = tensor.shape;
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) {
    bytes = 0;
    return true;
  }
  bytes = tensor.counts ? sizeof(std::int64_t) : sizeof(float);
  for (const std::int64_t size : shape) {
    if (static_cast<std::uint64_t>(size) > limit / bytes) return false;
    bytes *= static_cast<std::uint64_t>(size);
  }
  return bytes <= limit;
}

std::string check_layout(TensorHeader& header, std::uint64_t data_bytes) {
  std::sort(header.tensors.begin(), header.tensors.end(), [](const TensorEntry& a, const TensorEntry& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;  // an empty tensor before the one that starts there
  });
  std::uint64_t at = 0;
  for (const TensorEntry& tensor : header.tensors) {
    std::uint64_t bytes = 0;
    if (tensor.begin != at) return "tensor \"" + tensor.name + "\" leaves a hole or overlaps another";
    if (tensor.end < tensor.begin || tensor.end > data_bytes) {
      return "tensor \"" + tensor.name + "\" reaches beyond the end of the file";
    }
    if (!shape_bytes(tensor, data_bytes, bytes) || bytes != tensor.end - tensor.begin) {
      return "the shape of tensor \"" + tensor.name + "\" does not match its bytes";
    }
    at = tensor.end;
  }
  if (at != data_bytes) return "the tensors end at byte " + std::to_string(at) + " of " + std::to_string(data_bytes);
  return "";
}

}  // namespace

Result<TensorHeader> parse_tensor_header(std::string_view json, std::uint64_t data_bytes) {
  // The parser takes a NUL for the end of its input.
  if (json.find('\0') != json.npos) return Error{ErrorKind::kCorrupt, "its header has a NUL in it"};
  TensorHeader header;
  try {
    header = header_of(parse(json));
  } catch (const Odd& odd) {
    if (odd.other_type) return Error{ErrorKind::kInvalidJob, odd.what};
    return Error{ErrorKind::kCorrupt, "its header has " + odd.what};
  } catch (const Json::parse_error& error) {
    return Error{ErrorKind::kCorrupt, "its header has no JSON at byte " + std::to_string(error.byte)};
  } catch (const Json::exception&) {
    return Error{ErrorKind::kCorrupt, "its header has a number that is too large"};
  }
  if (const std::string problem = check_layout(header, data_bytes); !problem.empty())
    return Error{ErrorKind::kCorrupt, problem};
  std::erase_if(header.tensors, [](const TensorEntry& tensor) { return tensor.counts; });
  return header;
}

Result<std::string> format_tensor_header(const TensorHeader& header) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  if (!header.metadata.empty()) json[std::string(kMetadataKey)] = header.metadata;
  for (const TensorEntry& tensor : header.tensors) {
    if (tensor.name == kMetadataKey || json.contains(tensor.name)) {
      return Error{ErrorKind::kFailed, "two tensors are called \"" + tensor.name + "\""};
    }
    auto& entry = json[tensor.name];
    entry["dtype"] = "F32";
    entry["shape"] = tensor.shape;
    entry["data_offsets"] = {tensor.begin, tensor.end};
  }
  try {
    return json.dump();
  } catch (const nlohmann::json::exception&) {
    return Error{ErrorKind::kFailed, "a name or a metadata text is not UTF-8"};
  }
}

}  // namespace tg::engine
