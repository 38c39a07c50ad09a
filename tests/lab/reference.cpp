// tgd_lab_reference --job FILE --members N [--elements MOST] [--set KEY=VALUE]... MODEL-RAW.safetensors...
//
// Computes a replayed run plainly (plain_exchange.h) and compares every given file with it bit for bit. Prints one JSON
// object: what was compared, the first difference if there is one, the entropies of codes and sums. Without files it
// only computes the entropies (verified is false then). Exit status: 0 no difference, 1 a difference, 2 usage or an
// unreadable file.
#include <bit>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "engine/storage/safetensors_header.h"
#include "tests/lab/plain_exchange.h"
#include "tests/lab/whole_number.h"

namespace tg::lab {
namespace {

constexpr std::size_t kMaxElements = 4 << 20;  // 0.1 s and 16 MB per member and step

struct Arguments {
  schema::JobSpec job;
  std::size_t members = 0, elements = kMaxElements;
  std::vector<std::string> files;
};

Result<std::string> read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) return Error{ErrorKind::kIo, path + ": cannot be read"};
  return text.str();
}

Result<Arguments> parse(const std::vector<std::string>& words) {
  Arguments arguments;
  std::vector<std::string> settings;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!words[i].starts_with("--")) {
      arguments.files.push_back(words[i]);
      continue;
    }
    if (i + 1 == words.size()) return Error{ErrorKind::kUsage, words[i] + " needs a value"};
    const std::string& value = words[++i];
    if (words[i - 1] == "--job") {
      Result<std::string> text = read_text(value);
      if (!text.ok()) return text.error();
      Result<schema::JobSpec> job = schema::parse_job(*text, value);
      if (!job.ok()) return job.error();
      arguments.job = *job;
    } else if (words[i - 1] == "--set") {
      settings.push_back(value);
    } else if (words[i - 1] == "--members" || words[i - 1] == "--elements") {
      const Result<std::size_t> number = whole_number(words[i - 1], value);
      if (!number.ok()) return number.error();
      (words[i - 1] == "--members" ? arguments.members : arguments.elements) = *number;
    } else {
      return Error{ErrorKind::kUsage, "unknown option " + words[i - 1]};
    }
  }
  for (const std::string& setting : settings)
    if (const Status set = schema::set_job_key(arguments.job, setting); !set.ok()) return set.error();
  if (arguments.members == 0) return Error{ErrorKind::kUsage, "--members is missing"};
  return arguments;
}

// Reads slices of tensors out of one file, which may be larger than memory allows to read whole.
class TensorFile {
 public:
  static Result<TensorFile> open(const std::string& path) {
    TensorFile file;
    file.stream_.open(path, std::ios::binary | std::ios::ate);
    const auto bytes = static_cast<std::uint64_t>(file.stream_.tellg());
    std::uint64_t header_bytes = 0;
    file.stream_.seekg(0);
    file.stream_.read(reinterpret_cast<char*>(&header_bytes), sizeof header_bytes);
    if (!file.stream_ || header_bytes > bytes - sizeof header_bytes || header_bytes > engine::kMaxHeaderBytes)
      return Error{ErrorKind::kIo, path + ": cannot be read, or is no safetensors file"};
    std::string header(header_bytes, ' ');
    file.stream_.read(header.data(), static_cast<std::streamsize>(header_bytes));
    file.data_begin_ = sizeof header_bytes + header_bytes;
    Result<engine::TensorHeader> parsed = engine::parse_tensor_header(header, bytes - file.data_begin_);
    if (!parsed.ok()) return Error{ErrorKind::kCorrupt, path + ": " + parsed.error().message};
    for (const engine::TensorEntry& entry : parsed->tensors) file.tensors_[entry.name] = entry;
    return file;
  }
  // Empty if the tensor is missing or shorter.
  std::vector<float> read(const std::string& name, std::size_t first, std::size_t count) {
    const auto found = tensors_.find(name);
    if (found == tensors_.end() || found->second.begin + (first + count) * sizeof(float) > found->second.end) return {};
    std::vector<float> values(count);
    stream_.seekg(static_cast<std::streamoff>(data_begin_ + found->second.begin + first * sizeof(float)));
    stream_.read(reinterpret_cast<char*>(values.data()), static_cast<std::streamsize>(count * sizeof(float)));
    return stream_ ? values : std::vector<float>();
  }

 private:
  std::ifstream stream_;
  std::uint64_t data_begin_ = 0;
  std::map<std::string, engine::TensorEntry> tensors_;
};

// The first difference, or an empty text.
Result<std::string> compare(const std::string& path, const engine::SegmentTable& segments,
                            const std::vector<Slice>& slices) {
  Result<TensorFile> file = TensorFile::open(path);
  if (!file.ok()) return file.error();
  for (const Slice& slice : slices) {
    const std::string& name = segments[slice.segment].name;
    const std::vector<float> theirs = file->read(name, slice.first, slice.count);
    if (theirs.empty()) return path + ": " + name + " is missing or short";
    for (std::size_t i = 0; i < slice.count; ++i) {
      if (std::bit_cast<std::uint32_t>(theirs[i]) == std::bit_cast<std::uint32_t>(slice.parameters[i])) continue;
      char text[200];
      std::snprintf(text, sizeof text, "element %zu is %.9g, the reference has %.9g", slice.first + i,
                    static_cast<double>(theirs[i]), static_cast<double>(slice.parameters[i]));
      return path + ": " + name + ": " + text;
    }
  }
  return std::string();
}

Result<bool> run(const std::vector<std::string>& words) {
  Result<Arguments> arguments = parse(words);
  if (!arguments.ok()) return arguments.error();
  const engine::Model model = engine::make_model(arguments->job.model);
  Result<PlainRun> plain = run_plainly(arguments->job, model, arguments->members, arguments->elements);
  if (!plain.ok()) return plain.error();
  std::size_t elements = 0;
  for (const Slice& slice : plain->slices) elements += slice.count;
  nlohmann::ordered_json report;
  report["parameters"] = model.segments.parameter_count();
  report["compared_files"] = arguments->files.size();
  report["compared_elements"] = elements;
  std::string difference;
  for (const std::string& path : arguments->files) {
    Result<std::string> found = compare(path, model.segments, plain->slices);
    if (!found.ok()) return found.error();
    if (difference.empty()) difference = *found;
  }
  report["verified"] = difference.empty() && !arguments->files.empty();
  if (!difference.empty()) report["difference"] = difference;
  report["code_bits"] = plain->entropies.code_bits;
  report["sum_bits"] = plain->entropies.sum_bits;
  report["zeros"] = plain->entropies.zeros;
  std::printf("%s\n", report.dump().c_str());
  return difference.empty();
}

}  // namespace
}  // namespace tg::lab

int main(int argc, char** argv) {
  const tg::Result<bool> equal = tg::lab::run({argv + 1, argv + argc});
  if (!equal.ok()) {
    std::fprintf(stderr, "tgd_lab_reference: %s\n", equal.error().message.c_str());
    return 2;
  }
  return *equal ? 0 : 1;
}
