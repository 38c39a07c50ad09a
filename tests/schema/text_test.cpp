#include "schema/text.h"

#include <gtest/gtest.h>

#include "schema/limits.h"

namespace tg::schema {
namespace {

TEST(Text, Names) {
  for (const char* good : {"a", "node-a", "10.0.0.1", "n0de.example"}) EXPECT_TRUE(is_node_name(good)) << good;
  for (const char* bad : {"", "-a", ".a", "A", "a b", "a_b", "a/b", "\xc3\xa4"}) EXPECT_FALSE(is_node_name(bad)) << bad;
  for (const char* good : {"a", "Run_1", "2017.12-x"}) EXPECT_TRUE(is_run_id(good)) << good;
  for (const char* bad : {"", ".", "..", "_a", "a/b", "a b", "a\n"}) EXPECT_FALSE(is_run_id(bad)) << bad;
  EXPECT_FALSE(is_run_id(std::string_view("a\0b", 3)));
  EXPECT_EQ(set_aside_id("a", "000000000000004d"), "a-000000000000004d");
  const std::string longest(kMaxRunIdBytes, 'a');
  EXPECT_TRUE(is_run_id(set_aside_id(longest, "000000000000004d")));
  EXPECT_TRUE(is_set_aside(set_aside_id(longest, "000000000000004d"), longest));
  EXPECT_FALSE(is_set_aside("a", "a"));
  EXPECT_FALSE(is_set_aside("b-000000000000004d", "a"));
}

TEST(Text, PrintableKeepsTerminalsSafe) {
  EXPECT_TRUE(
      is_printable("n\xc3\xb6"
                   "de 5 %"));
  EXPECT_FALSE(is_printable("a\x1b[2J"));
  EXPECT_FALSE(is_printable("a\x7f"));
  EXPECT_FALSE(
      is_printable("a\xc2\x9b"
                   "2J"));  // CSI as one C1 character
  EXPECT_FALSE(is_printable("a\nb"));
  EXPECT_TRUE(is_printable_lines("a\nb\t"));
  EXPECT_FALSE(is_printable_lines("a\rb"));
}

TEST(Text, ClipCutsBetweenCharacters) {
  EXPECT_EQ(clip_text("abc", 5), "abc");
  EXPECT_EQ(clip_text("abcdef", 5), "abcde");
  EXPECT_EQ(clip_text("abcd\xc3\xb6", 5), "abcd");
  EXPECT_EQ(clip_text("a\n\x1b"
                      "b",
                      5),
            "a  b");
  EXPECT_EQ(clip_text("a\xc2\x9b"
                      "b",
                      5),
            "a b");
  EXPECT_TRUE(is_printable(clip_text("\x01\x02\xc2\x80\x7f", 10)));
}

TEST(Text, WrapBreaksAtSpacesAndCutsLongWords) {
  using Lines = std::vector<std::string>;
  EXPECT_EQ(wrap_text("", 5), Lines{""});
  EXPECT_EQ(wrap_text("one two three", 7), (Lines{"one two", "three"}));
  EXPECT_EQ(wrap_text("one  two", 8), Lines{"one two"});
  EXPECT_EQ(wrap_text("a abcdefgh b", 3), (Lines{"a", "abc", "def", "gh", "b"}));
  EXPECT_EQ(wrap_text("\xc3\xb6\xc3\xb6\xc3\xb6", 2), (Lines{"\xc3\xb6\xc3\xb6", "\xc3\xb6"}));
}

TEST(Text, AddressesOfBothFamilies) {
  EXPECT_TRUE(is_ipv4("10.0.0.1"));
  for (const char* no : {"10.0.0", "10.0.0.256", "::1", "node-a", ""}) EXPECT_FALSE(is_ipv4(no)) << no;
  for (const char* yes : {"::", "::1", "[::1]", "fd00::1"}) EXPECT_TRUE(is_ipv6(yes)) << yes;
  for (const char* no : {"10.0.0.1", "[10.0.0.1]", "fd00::g", "[::1", "node-a", "[]", ""})
    EXPECT_FALSE(is_ipv6(no)) << no;
}

// FNV-1a's published test vectors.
TEST(Text, HashIsFnv1a) {
  EXPECT_EQ(hash_text(""), 0xcbf29ce484222325u);
  EXPECT_EQ(hash_text("a"), 0xaf63dc4c8601ec8cu);
  EXPECT_EQ(hash_text("foobar"), 0x85944171f73967e8u);
}

}  // namespace
}  // namespace tg::schema
