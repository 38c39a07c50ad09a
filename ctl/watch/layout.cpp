#include "ctl/watch/layout.h"

#include <algorithm>
#include <numeric>

#include "ctl/format/table.h"
#include "ctl/terminal/visible.h"
#include "schema/text.h"

namespace tg::ctl {
namespace {

constexpr std::size_t kMinCell = 8;  // width of a first or last column that is cut

// True for characters of two or three UTF-8 bytes that take one column: Latin, Greek and Cyrillic letters, dashes,
// quotes and braille.
bool is_narrow(std::string_view character) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(character[i]); };
  if (character.size() == 2) {
    const unsigned value = (byte(0) & 0x1fu) << 6 | (byte(1) & 0x3fu);
    return (value >= 0xa0 && value < 0x300) || (value >= 0x370 && value < 0x483) || (value >= 0x48a && value < 0x530);
  }
  if (character.size() != 3 || byte(0) != 0xe2) return false;
  const bool braille = byte(1) >= 0xa0 && byte(1) <= 0xa3;
  return braille || (byte(1) == 0x80 && byte(2) >= 0x90 && byte(2) <= 0xa6);  // U+2010 to U+2026
}

}  // namespace

std::string in_columns(std::string_view text, bool utf8) {
  std::string whole = visible(text), shown;
  for (std::size_t begin = 0, end = 0; begin < whole.size(); begin = end) {
    end = begin + 1;
    while (end < whole.size() && (static_cast<unsigned char>(whole[end]) & 0xc0) == 0x80) ++end;
    const std::string_view character = std::string_view(whole).substr(begin, end - begin);
    if (character == "\n" || character == "\t")
      shown += ' ';
    else if (character.size() == 1 || (utf8 && is_narrow(character)))
      shown += character;
    else
      shown += '?';
  }
  return shown;
}

std::size_t width_of(const ScreenLine& line) {
  return std::accumulate(line.begin(), line.end(), std::size_t{0},
                         [](std::size_t sum, const Piece& piece) { return sum + schema::text_width(piece.text); });
}

ScreenLine cut_line(ScreenLine line, const View& view, unsigned rest) {
  std::size_t left = view.columns;
  for (Piece& piece : line) {
    piece.text = fit_line(in_columns(piece.text, view.utf8), left);
    piece.style |= rest;
    left -= schema::text_width(piece.text);
  }
  if (rest != kPlain) line.push_back({std::string(left, ' '), rest});
  return line;
}

std::vector<ScreenLine> table_lines(std::vector<ScreenLine> rows, const View& view) {
  std::vector<std::size_t> widths(rows.front().size());
  for (ScreenLine& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) {
      row[i].text = in_columns(row[i].text, view.utf8);
      widths[i] = std::max(widths[i], schema::text_width(row[i].text));
    }
  std::size_t first = 0, count = widths.size(), gap = 2;
  for (; count > 0; --count) {
    std::size_t others = 0;
    for (std::size_t i = 1; i < count; ++i) others += i + 1 < count ? widths[i] : std::min(widths[i], kMinCell);
    const std::size_t min = std::min(widths[0], kMinCell) + others;
    gap = widths[0] + others + 2 * (count - 1) <= view.columns ? 2 : 1;
    if (count > 1 && min + gap * (count - 1) > view.columns) continue;
    first = std::min(widths[0], view.columns - std::min(view.columns, others + gap * (count - 1)));
    break;
  }
  for (ScreenLine& row : rows) {
    row.resize(count);
    for (std::size_t i = 0; i < count; ++i) {
      if (i == 0) row[i].text = cut_middle(row[i].text, first);
      if (i + 1 == count) break;
      row[i].text.append((i == 0 ? first : widths[i]) - schema::text_width(row[i].text) + gap, ' ');
    }
  }
  return rows;
}

}  // namespace tg::ctl
