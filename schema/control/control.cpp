#include "schema/control/control.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>

#include "schema/control.capnp.h"
#include "schema/described/wire_form.h"
#include "schema/text.h"
#include "schema/wire.h"

namespace tg::schema {
namespace {

// Always one segment: a message that outgrew its first one is copied into one that fits.
template <class Root, class Message>
std::string encode(const Message& from) {
  capnp::MallocMessageBuilder message;
  typename Root::Builder root = message.initRoot<Root>();
  root.setId(from.id);
  write_union(capnp::DynamicStruct::Builder(root), from.body);
  const auto flat = [](capnp::MessageBuilder& one) {
    const auto bytes = capnp::messageToFlatArray(one);
    return std::string(bytes.asChars().begin(), bytes.asChars().size());
  };
  if (message.getSegmentsForOutput().size() == 1) return flat(message);
  capnp::MallocMessageBuilder single(static_cast<capnp::uint>(root.asReader().totalSize().wordCount) + 1);
  single.setRoot(root.asReader());
  TG_CHECK(single.getSegmentsForOutput().size() == 1);
  return flat(single);
}

template <class Root, class Message>
Result<Message> decode(const char* what, std::span<const std::byte> bytes) {
  return guarded<Message>(what, [bytes]() -> Result<Message> {
    const AlignedMessage message(bytes, kMaxControlBytes);
    capnp::FlatArrayMessageReader reader(message.words(), reader_options(message.words().size()));
    const typename Root::Reader from = reader.getRoot<Root>();
    Message read{from.getId(), {}};
    read_union(capnp::DynamicStruct::Reader(from), static_cast<std::size_t>(from.which()), read.body);
    return read;
  });
}

}  // namespace

std::string uneven_shares(const std::vector<MemberShare>& shares) {
  if (shares.empty()) return "";
  const auto [min, max] = std::minmax_element(shares.begin(), shares.end(),
                                              [](const auto& a, const auto& b) { return a.samples < b.samples; });
  if (max->samples - min->samples <= 1) return "";
  return joined(shares, ", ", [](const auto& share) { return share.node + " " + std::to_string(share.samples); });
}

bool RunStatus::saved_by_all() const {
  if (!is_final(state) || state == RunState::kFailed) return true;
  return std::all_of(members.begin(), members.end(), [](const MemberStatus& member) {
    return member.save == SaveState::kNone || member.save == SaveState::kSaved;
  });
}

bool RunStatus::has_left(std::string_view node) const {
  return std::ranges::find(departed, node, &Departure::node) != departed.end();
}

Result<RunState> parse_run_state(std::string_view name) {
  std::string upper(name);
  for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  if (const std::optional<RunState> state = from_word<RunState>(upper)) return *state;
  return Error{ErrorKind::kUsage,
               "\"" + clip_text(name, 100) + "\" is not a run state; choose one of " + joined(words_of(RunState()))};
}

std::string encode_request(const Request& request) { return encode<wire::Request>(request); }

Result<Request> decode_request(std::span<const std::byte> bytes) {
  return decode<wire::Request, Request>("request", bytes);
}

std::string encode_reply(const Reply& reply) {
  const auto* const mesh = std::get_if<MeshStatus>(&reply.body);
  const auto with_runs = [&](std::size_t count) {
    MeshStatus newest = *mesh;
    newest.runs.resize(count);
    return encode_reply({reply.id, std::move(newest)});
  };
  if (mesh != nullptr && mesh->runs.size() > kMaxRunsKept) return with_runs(kMaxRunsKept);
  std::string bytes = encode<wire::Reply>(reply);
  if (bytes.size() <= kMaxControlBytes) return bytes;
  TG_CHECK(mesh != nullptr && !mesh->runs.empty(), bytes.size());
  return with_runs(mesh->runs.size() / 2);  // too many runs with too many members
}

Result<Reply> decode_reply(std::span<const std::byte> bytes) { return decode<wire::Reply, Reply>("reply", bytes); }

}  // namespace tg::schema
