// The live view of `status --watch`: what is on the screen, and what a key does. Nothing on it is wider or taller than
// the view. Whatever others say is made visible(), and characters that may take another number of columns than one are
// shown as "?". Pure.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "ctl/watch/facts.h"

namespace tg::ctl {

// How a piece of text looks; together as well.
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

// Printable keys are themselves.
enum Key : int { kNoKey = 0, kEscapeKey = 27, kUpKey = 256, kDownKey, kPageUpKey, kPageDownKey, kHomeKey, kEndKey };

enum class Page { kMesh, kLog, kHelp };

struct View {
  std::size_t columns = 80, lines = 24;
  bool utf8 = true;
  Page page = Page::kMesh;
  std::string run = {};    // chosen with a key; "" = the first one
  std::size_t scroll = 0;  // lines of the log that are below the screen
  bool quit = false;
};

// The run that is shown; nullptr if there is none.
const schema::RunStatus* chosen_run(const Facts& facts, const View& view);
std::vector<ScreenLine> screen(const Facts& facts, const View& view);
void press(int key, const Facts& facts, View& view);

}  // namespace tg::ctl
