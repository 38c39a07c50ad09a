#include "ctl/watch/terminal.h"

#include <curses.h>
#include <langinfo.h>
#include <poll.h>
#include <unistd.h>

#include <clocale>
#include <cstdlib>
#include <string_view>

#include <term.h>  // after <curses.h>
#undef lines
#undef columns

namespace tg::ctl {
namespace {

constexpr int kEscapeMs = 25;  // a key's bytes follow an Esc within this time
constexpr int kRedrawKey = 'L' - '@';

volatile std::sig_atomic_t ending_signal = 0;

void take_signal(int number) {
  ending_signal = number;
  if (number != SIGABRT) return;
  endwin();
  std::signal(number, SIG_DFL);
  std::raise(number);
}

// The styles with a colour, in the order of ncurses' pairs 1, 2, ...
constexpr struct {
  unsigned style;
  short colour;
} kColours[] = {{kGood, COLOR_GREEN}, {kPoor, COLOR_YELLOW}, {kBad, COLOR_RED}, {kCurve, COLOR_CYAN}};

attr_t attributes(unsigned style, bool colours) {
  attr_t attributes = A_NORMAL;
  if ((style & kBold) != 0 || (!colours && (style & (kPoor | kBad)) != 0)) attributes |= A_BOLD;
  if ((style & kFaint) != 0) attributes |= A_DIM;
  if ((style & kReverse) != 0) attributes |= A_REVERSE;
  short pair = 0;
  for (const auto& one : kColours) {
    ++pair;
    if (colours && (style & one.style) != 0) return attributes | static_cast<attr_t>(COLOR_PAIR(pair));
  }
  return attributes;
}

int key_of(int code) {
  static constexpr struct {
    int code, key;
  } kKeys[] = {{KEY_UP, kUpKey},          {KEY_DOWN, kDownKey}, {KEY_PPAGE, kPageUpKey},
               {KEY_NPAGE, kPageDownKey}, {KEY_HOME, kHomeKey}, {KEY_END, kEndKey}};
  for (const auto& one : kKeys)
    if (one.code == code) return one.key;
  return code >= 0 && code < 128 ? code : kNoKey;  // ERR is negative
}

}  // namespace

bool Terminal::possible() {
  if (isatty(STDIN_FILENO) != 1 || isatty(STDOUT_FILENO) != 1) return false;
  int problem = 0;
  if (setupterm(nullptr, STDOUT_FILENO, &problem) != OK) return false;
  const bool placed = cursor_address != nullptr;
  del_curterm(cur_term);
  return placed;
}

Terminal::Terminal() {
  std::setlocale(LC_CTYPE, "");
  utf8_ = std::string_view(nl_langinfo(CODESET)) == "UTF-8";
  ending_signal = 0;
  for (const int number : {SIGTERM, SIGHUP, SIGQUIT, SIGABRT}) {
    Kept before{number, {}};
    struct sigaction action {};
    action.sa_handler = take_signal;
    sigemptyset(&action.sa_mask);
    if (sigaction(number, nullptr, &before.action) != 0 || before.action.sa_handler == SIG_IGN) continue;
    sigaction(number, &action, nullptr);
    kept_.push_back(before);
  }
  for (const char* const fixed : {"LINES", "COLUMNS"}) unsetenv(fixed);  // ncurses follows the window without them
  initscr();
  set_escdelay(kEscapeMs);
  cbreak();
  noecho();
  nodelay(stdscr, true);
  keypad(stdscr, true);
  curs_set(0);
  colours_ = has_colors() && start_color() == OK && use_default_colors() == OK;
  short pair = 0;
  for (const auto& one : kColours)
    if (colours_) init_pair(++pair, one.colour, -1);
}

Terminal::~Terminal() {
  endwin();
  for (const Kept& before : kept_) sigaction(before.signal, &before.action, nullptr);
}

void Terminal::measure(View& view) const {
  view.columns = static_cast<std::size_t>(getmaxx(stdscr));
  view.lines = static_cast<std::size_t>(getmaxy(stdscr));
  view.utf8 = utf8_;
}

void Terminal::draw(const std::vector<ScreenLine>& lines) {
  werase(stdscr);
  int y = 0;
  for (const ScreenLine& line : lines) {
    wmove(stdscr, y++, 0);
    for (const Piece& piece : line) {
      wattrset(stdscr, static_cast<int>(attributes(piece.style, colours_)));
      waddstr(stdscr, piece.text.c_str());
    }
  }
  wrefresh(stdscr);
}

int Terminal::key(int wait_ms) {
  pollfd input{STDIN_FILENO, POLLIN, 0};
  if (poll(&input, 1, wait_ms) > 0 && (input.revents & (POLLHUP | POLLERR | POLLNVAL)) != 0 && ending_signal == 0)
    ending_signal = SIGHUP;
  const int code = wgetch(stdscr);  // also without input, because it notices a new size
  if (code == kRedrawKey || code == KEY_RESIZE) clearok(curscr, true);  // the contents are unknown now
  return key_of(code);
}

int Terminal::ended_by() const { return ending_signal; }

}  // namespace tg::ctl
