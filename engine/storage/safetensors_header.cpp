#include "engine/storage/safetensors_header.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

namespace tg::engine {
namespace {

constexpr std::string_view kMetadataKey = "__metadata__";

// Follows the parser event by event and keeps only what the format allows: excess depth, lengths and repeated names are
// refused as they appear. A handler returns false to stop; `problem` says why.
class HeaderReader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  TensorHeader header;
  std::string problem;
  bool other_type = false;  // the problem is a tensor of another type

  bool key(string_t& name) override {
    switch (place_) {
      case Place::kTop:
        return top_key(name);
      case Place::kMetadata:
        key_ = name;
        return header.metadata.count(name) == 0 || fail("metadata repeats \"" + name + "\"");
      default:
        return field_key(name);
    }
  }

  bool start_object(std::size_t /*count*/) override {
    if (place_ == Place::kStart) return go(Place::kTop);
    if (place_ == Place::kMetadataValue) return go(Place::kMetadata);
    if (place_ == Place::kTensorValue) return go(Place::kTensor);
    return fail("an object where none belongs");
  }

  bool end_object() override {
    if (place_ == Place::kTop) return go(Place::kEnd);
    if (place_ == Place::kTensor && fields_.size() != 3) {
      return fail("tensor \"" + header.tensors.back().name + "\" lacks a field");
    }
    return go(Place::kTop);
  }

  bool start_array(std::size_t /*count*/) override {
    if (place_ == Place::kShapeValue) return go(Place::kShape);
    if (place_ == Place::kOffsetsValue) return go(Place::kOffsets);
    return fail("a list where none belongs");
  }

  bool end_array() override {
    if (place_ == Place::kOffsets && offset_count_ != 2) return fail("data_offsets are not two numbers");
    return go(Place::kTensor);
  }

  bool string(string_t& text) override {
    if (place_ == Place::kMetadata) {
      header.metadata.emplace(key_, text);
      return true;
    }
    if (place_ != Place::kTypeValue) return fail("a text where none belongs");
    header.tensors.back().counts = text == "I64";
    if (text == "F32" || text == "I64") return go(Place::kTensor);
    other_type = true;
    return fail("tensor \"" + header.tensors.back().name + "\" is " + text +
                "; float32 is read: save it again as that");
  }

  bool number_unsigned(std::uint64_t value) override {
    TensorEntry* tensor = header.tensors.empty() ? nullptr : &header.tensors.back();
    if (place_ == Place::kShape) {
      if (tensor->shape.size() == kMaxTensorDimensions) return fail("a shape has too many dimensions");
      if (value > INT64_MAX) return fail("a dimension is too large");
      tensor->shape.push_back(static_cast<std::int64_t>(value));
      return true;
    }
    if (place_ == Place::kOffsets && offset_count_ < 2) {
      (offset_count_++ == 0 ? tensor->begin : tensor->end) = value;
      return true;
    }
    return fail("a number where none belongs");
  }

  bool null() override { return fail("null where a value belongs"); }
  bool boolean(bool) override { return fail("true or false where none belongs"); }
  bool number_integer(std::int64_t) override { return fail("a negative number"); }
  bool number_float(double, const string_t&) override { return fail("a number that is not an integer"); }
  bool binary(binary_t&) override { return fail("binary data"); }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception&) override {
    return fail("no JSON at byte " + std::to_string(position));
  }

 private:
  // In kXValue the key X has been read and its value comes next.
  enum class Place {
    kStart,
    kTop,
    kMetadataValue,
    kMetadata,
    kTensorValue,
    kTensor,
    kTypeValue,
    kShapeValue,
    kShape,
    kOffsetsValue,
    kOffsets,
    kEnd
  };

  bool top_key(const std::string& name) {
    if (!names_.insert(name).second) return fail("\"" + name + "\" appears twice");
    if (name == kMetadataKey) return go(Place::kMetadataValue);
    if (header.tensors.size() == kMaxTensors) return fail("too many tensors");
    header.tensors.push_back({.name = name, .shape = {}});
    fields_.clear();
    offset_count_ = 0;
    return go(Place::kTensorValue);
  }

  bool field_key(const std::string& name) {
    if (!fields_.insert(name).second) return fail("\"" + name + "\" appears twice in one tensor");
    if (name == "dtype") return go(Place::kTypeValue);
    if (name == "shape") return go(Place::kShapeValue);
    if (name == "data_offsets") return go(Place::kOffsetsValue);
    return fail("a tensor has the unknown field \"" + name + "\"");
  }

  bool go(Place place) {
    place_ = place;
    return true;
  }
  bool fail(const std::string& text) {
    if (problem.empty()) problem = text;
    return false;
  }

  Place place_ = Place::kStart;
  std::string key_;
  std::set<std::string> names_;
  std::set<std::string> fields_;  // fields of the tensor being read
  int offset_count_ = 0;
};

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
  HeaderReader reader;
  if (!nlohmann::json::sax_parse(json.begin(), json.end(), &reader)) {
    if (reader.other_type) return Error{ErrorKind::kInvalidJob, reader.problem};
    return Error{ErrorKind::kCorrupt, "its header has " + reader.problem};
  }
  // The parser takes a NUL for the end of its input.
  if (json.find('\0') != json.npos) return Error{ErrorKind::kCorrupt, "its header has a NUL in it"};
  if (const std::string problem = check_layout(reader.header, data_bytes); !problem.empty()) {
    return Error{ErrorKind::kCorrupt, problem};
  }
  std::erase_if(reader.header.tensors, [](const TensorEntry& tensor) { return tensor.counts; });
  return std::move(reader.header);
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
