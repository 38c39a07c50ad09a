// Tests of all described structs: each field comes back through Cap'n Proto, no member and no field of the schema is
// missing, shown fields are in the JSON, and the largest reply fits a control message.
#include "tests/schema/described.h"

#include <capnp/dynamic.h>
#include <gtest/gtest.h>

#include <concepts>
#include <set>

#include "schema/control.capnp.h"
#include "schema/control/control.h"
#include "schema/described/json_form.h"
#include "schema/described/wire_form.h"
#include "schema/frame.capnp.h"
#include "schema/frame/frame.h"
#include "tests/schema/samples.h"

namespace tg::schema {
namespace {

template <class Body>
Body filled_body(Fill::How how = Fill::How::kDistinct) {
  Body body = filled<Body>(how);
  if constexpr (std::same_as<Body, Diagnosis>) {
    const std::size_t pairs = body.nodes.size() * body.nodes.size();
    body.reach.resize(pairs, LinkResult::kOk);
    body.mbps.resize(pairs, 1.5F);
  }
  return body;
}

template <class Message, class Body, class Encode, class Decode>
void expect_back(Encode encode, Decode decode) {
  const Body body = filled_body<Body>();
  const Result<Message> read = decode(bytes_of(encode({7, body})));
  ASSERT_TRUE(read.ok()) << read.error().message;
  ASSERT_TRUE(std::holds_alternative<Body>(read->body));
  EXPECT_EQ(told(std::get<Body>(read->body)), told(body));
}

template <class... Body>
void each_request_comes_back(std::variant<Body...>*) {
  (expect_back<Request, Body>(encode_request, decode_request), ...);
}
template <class... Body>
void each_reply_comes_back(std::variant<Body...>*) {
  (expect_back<Reply, Body>(encode_reply, decode_reply), ...);
}

TEST(Described, EveryFieldComesBack) {
  each_request_comes_back(static_cast<RequestBody*>(nullptr));
  each_reply_comes_back(static_cast<ReplyBody*>(nullptr));
}

// All fields of the schema and of the struct, and of the structs within them.
template <Described T>
void expect_whole(capnp::StructSchema schema) {
  SCOPED_TRACE(schema.getShortDisplayName().cStr());
  const auto rules = rules_of<T>();
  // A base counts as one member.
  constexpr bool has_base = std::derived_from<T, StateCounters> && !std::same_as<T, StateCounters>;
  constexpr std::size_t of_base = has_base ? member_count<StateCounters>() - 1 : 0;
  EXPECT_EQ(rules.size(), member_count<T>() + of_base) << "a member has no line in fields()";
  std::set<std::string> described, declared;
  for (const auto& [name, rule] : rules) described.insert(wire_field(schema, name.c_str()).getProto().getName().cStr());
  for (const auto field : schema.getFields())
    if (const std::string name = field.getProto().getName().cStr(); !name.starts_with("obsolete"))
      declared.insert(name);
  EXPECT_EQ(described, declared);
  T value;
  fields(value, [&]<class Member>(const char* name, Member&, const Rule& = {}) {
    const capnp::Type type = wire_field(schema, name).getType();
    if constexpr (Described<Member>) expect_whole<Member>(type.asStruct());
    if constexpr (requires { typename Member::value_type; })
      if constexpr (Described<typename Member::value_type>)
        expect_whole<typename Member::value_type>(type.asList().getElementType().asStruct());
  });
}

template <class... Body>
void each_is_whole(capnp::StructSchema message, std::variant<Body...>*) {
  ASSERT_EQ(message.getUnionFields().size(), sizeof...(Body));
  capnp::uint index = 0;
  const auto next = [&] { return message.getUnionFields()[index++].getType(); };
  const auto one = [&]<class T>(std::type_identity<T>) {
    const capnp::Type type = next();
    if constexpr (Described<T>)
      if (type.isStruct()) expect_whole<T>(type.asStruct());
  };
  (one(std::type_identity<Body>()), ...);
}

TEST(Described, NothingIsForgotten) {
  EXPECT_EQ(rules_of<StateCounters>().size(), member_count<StateCounters>());
  each_is_whole(capnp::Schema::from<wire::Request>(), static_cast<RequestBody*>(nullptr));
  each_is_whole(capnp::Schema::from<wire::Reply>(), static_cast<ReplyBody*>(nullptr));
  each_is_whole(capnp::Schema::from<wire::Frame>(), static_cast<FrameBody*>(nullptr));
}

template <Described T>
void expect_shown() {
  const T value = filled<T>();
  const OrderedJson json = to_json(value, JsonView::kShown);
  for (const auto& [name, rule] : rules_of<T>()) {
    const JsonPlace place = json_place(name.c_str(), rule, JsonView::kShown);
    const OrderedJson object = place.object.empty() ? json : json.value(place.object, OrderedJson::object());
    EXPECT_EQ(object.contains(place.key) && !object[place.key].is_null(), rule.shown) << name;
  }
}

TEST(Described, ShownFieldsAreInTheJson) {
  expect_shown<RunStatus>();
  expect_shown<MemberStatus>();
  expect_shown<NodeStatus>();
  expect_shown<ComputeStatus>();
  expect_shown<Finding>();
}

TEST(Described, KeptFieldsComeBack) {
  const auto expect_kept = []<class T>(T value) {
    std::string problem;
    T read;
    fields(read, JsonReader(to_json(value, JsonView::kKept), problem, JsonReader::Missing::kError));
    EXPECT_EQ(problem, "");
    Told before = told(value), after = told(read);
    for (const auto& [name, rule] : rules_of<T>())
      if (!rule.kept)
        for (Told* all : {&before, &after}) std::erase_if(*all, [&](auto& one) { return one.first.starts_with(name); });
    EXPECT_EQ(after, before);
  };
  MemberStatus member = filled<MemberStatus>();
  expect_kept(member);
  RunStatus run = filled<RunStatus>();
  run.evaluated = false;
  expect_kept(run);
}

template <class... Body>
void each_fits(std::variant<Body...>*) {
  const auto one = []<class T>(std::type_identity<T>) {
    T body = filled_body<T>(Fill::How::kLargest);
    if constexpr (std::same_as<T, MeshStatus>) body.runs.clear();  // encode_reply leaves them out where they do not fit
    const std::string bytes = encode_reply({1, body});
    EXPECT_LE(bytes.size(), kMaxControlBytes);
    const Result<Reply> read = decode_reply(bytes_of(bytes));
    EXPECT_TRUE(read.ok()) << read.error().message;
  };
  (one(std::type_identity<Body>()), ...);
}

TEST(Described, TheLargestFitAReply) { each_fits(static_cast<ReplyBody*>(nullptr)); }

// The tests above notice a mistake.
struct Forgetful {
  std::string node;
  std::uint64_t told = 0;
  std::uint64_t forgotten = 0;
};
void fields(Is<Forgetful> auto& it, auto&& field) {
  field("node", it.node, node_name());
  field("samples", it.told);
}

TEST(Described, AnInjectedMistakeIsFound) {
  EXPECT_EQ(rules_of<Forgetful>().size(), 2u);
  EXPECT_EQ(member_count<Forgetful>(), 3u) << "a member without a line";
  const MemberShare share = filled<MemberShare>();
  MemberShare lost = share;
  lost.samples = 0;  // as if a form had left it out
  EXPECT_NE(told(lost), told(share));
  EXPECT_DEATH(wire_field(capnp::Schema::from<wire::Share>(), "no_such_field"), "no_such_field");
}

}  // namespace
}  // namespace tg::schema
