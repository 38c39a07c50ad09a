// The live view of `status --watch`: the screen's contents, and the effect of keys. The screen never exceeds the view.
// All text from others passes visible(), and characters that may not take exactly one column are shown as "?". Pure.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "ctl/watch/facts.h"

namespace tg::ctl {

// The looks of a piece of text; they can be combined.
enum Style : unsigned {
  kPlain = 0,
  kBold = 1,
  kFaint = 2,
  kReverse = 4,
  kGood = 8,
  kPoor = 16,
  kBad = 32,
  kCurve = 64
};

struct Piece {
  std::string text;
  unsigned style = kPlain;
};
using ScreenLine = std::vector<Piece>;

// Printable keys have their own code.
enum Key : int { kNoKey = 0, kEscapeKey = 27, kUpKey = 256, kDownKey, kPageUpKey, kPageDownKey, kHomeKey, kEndKey };

enum class Page { kMesh, kLog, kHelp };

struct View {
  std::size_t columns = 80, lines = 24;
  bool utf8 = true;
  Page page = Page::kMesh;
  std::string run = {};    // chosen with a key; "" = the first run
  std::size_t scroll = 0;  // lines of the log below the screen
  bool quit = false;
};

// The run that is shown; nullptr if there is none.
const schema::RunStatus* chosen_run(const Facts& facts, const View& view);
std::vector<ScreenLine> screen(const Facts& facts, const View& view);
void on_key(int key, const Facts& facts, View& view);

}  // namespace tg::ctl
