#include "engine/data/digits/digits.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "engine/data/content_hash.h"
#include "engine/data/digits/canvas.h"
#include "engine/data/digits/glyphs.h"
#include "kernels/base/check.h"

namespace tg::engine {
namespace {

static_assert(kDigitsSide == Canvas::kSide);
constexpr int kLinesPerSpan = 4;              // a curve between two points becomes four lines of 1 to 3 pixels
constexpr std::size_t kHashedImageStep = 97;  // every 97th image goes into the dataset's hash

// The size of the distortions. A test of linear and LeNet accuracy holds these numbers in place.
constexpr double kShake = 4.5;         // glyph units, of each point
constexpr double kBend = 7.0;          // glyph units, of each coefficient of the quadratic field
constexpr double kMaxHalfTurn = 0.16;  // tan(angle / 2): 18 degrees
constexpr double kMaxShear = 0.3;
constexpr double kMinScale = 0.145, kMaxScale = 0.205;  // pixels per glyph unit
constexpr double kMaxShift = 2.75;                      // pixels
constexpr double kMinRadius = 0.6, kMaxRadius = 1.5;
constexpr double kMinInk = 150, kMaxInk = 255;
constexpr int kMaxStrays = 2;     // short strokes that belong to no digit
constexpr double kMaxNoise = 40;  // grey levels

// Maps glyph units to pixels: bend, then rotate, shear and scale about the middle, then shift.
class Distortion {
 public:
  explicit Distortion(Draws& draws) {
    for (auto& axis : bend_) {
      for (double& coefficient : axis) coefficient = draws.between(-kBend, kBend);
    }
    const double t = draws.between(-kMaxHalfTurn, kMaxHalfTurn);
    const double cosine = (1 - t * t) / (1 + t * t), sine = 2 * t / (1 + t * t);
    const double shear = draws.between(-kMaxShear, kMaxShear);
    const double scale_x = draws.between(kMinScale, kMaxScale), scale_y = draws.between(kMinScale, kMaxScale);
    xx_ = scale_x * cosine;
    xy_ = scale_y * (shear * cosine - sine);
    yx_ = scale_x * sine;
    yy_ = scale_y * (shear * sine + cosine);
    shift_.x = (kDigitsSide - 1) / 2.0 + draws.between(-kMaxShift, kMaxShift);
    shift_.y = (kDigitsSide - 1) / 2.0 + draws.between(-kMaxShift, kMaxShift);
  }

  CanvasPoint operator()(CanvasPoint p) const {
    const double u = (p.x - 50) / 50, v = (p.y - 50) / 50;
    const double x = p.x - 50 + bend(bend_[0], u, v), y = p.y - 50 + bend(bend_[1], u, v);
    return {xx_ * x + xy_ * y + shift_.x, yx_ * x + yy_ * y + shift_.y};
  }

 private:
  using Coefficients = std::array<double, 5>;  // for u*u, u*v, v*v, u*u*v, u*v*v
  static double bend(const Coefficients& c, double u, double v) {
    return c[0] * u * u + c[1] * u * v + c[2] * v * v + c[3] * u * u * v + c[4] * u * v * v;
  }

  std::array<Coefficients, 2> bend_;
  double xx_, xy_, yx_, yy_;
  CanvasPoint shift_;
};

// The curve between b and c, at t in [0, 1], of a Catmull-Rom spline through a, b, c, d.
CanvasPoint spline(const CanvasPoint& a, const CanvasPoint& b, const CanvasPoint& c, const CanvasPoint& d, double t) {
  const auto one = [t](double p, double q, double r, double s) {
    return q + 0.5 * t * (r - p + t * (2 * p - 5 * q + 4 * r - s + t * (3 * (q - r) + s - p)));
  };
  return {one(a.x, b.x, c.x, d.x), one(a.y, b.y, c.y, d.y)};
}

void draw_curve(const std::vector<CanvasPoint>& points, bool closed, const Distortion& distort, const Pen& pen,
                Canvas& canvas) {
  const std::size_t n = points.size();
  const auto before = [&](std::size_t i) { return i > 0 ? points[i - 1] : points[closed ? n - 2 : 0]; };
  const auto after = [&](std::size_t i) { return i + 2 < n ? points[i + 2] : points[closed ? 1 : n - 1]; };
  CanvasPoint from = distort(points[0]);
  for (std::size_t i = 0; i + 1 < n; ++i) {
    for (int k = 1; k <= kLinesPerSpan; ++k) {
      const double t = static_cast<double>(k) / kLinesPerSpan;
      const CanvasPoint to = distort(spline(before(i), points[i], points[i + 1], after(i), t));
      canvas.draw_line(from, to, pen);
      from = to;
    }
  }
}

// Strokes that share a corner keep sharing it: a point's shake is looked up by its position.
class Shake {
 public:
  explicit Shake(Draws& draws) : draws_(draws) {}
  CanvasPoint operator()(GlyphPoint p) {
    for (const auto& [known, shaken] : shaken_) {
      if (known == p) return shaken;
    }
    const double x = p.x + draws_.between(-kShake, kShake), y = p.y + draws_.between(-kShake, kShake);
    shaken_.emplace_back(p, CanvasPoint{x, y});
    return {x, y};
  }

 private:
  Draws& draws_;
  std::vector<std::pair<GlyphPoint, CanvasPoint>> shaken_;
};

void draw_glyph(const Glyph& glyph, Draws& draws, Canvas& canvas) {
  const Distortion distort(draws);
  Pen pen;
  pen.radius = draws.between(kMinRadius, kMaxRadius);
  pen.edge = draws.between(0.8, 1.6);
  pen.ink = draws.between(kMinInk, kMaxInk);
  Shake shake(draws);
  std::vector<CanvasPoint> points;
  for (const Stroke& stroke : glyph) {
    points.clear();
    for (const GlyphPoint& p : stroke) points.push_back(shake(p));
    draw_curve(points, stroke.size() > 2 && stroke.front() == stroke.back(), distort, pen, canvas);
  }
}

void draw_strays(Draws& draws, Canvas& canvas) {
  const std::uint32_t strays = draws.below(kMaxStrays + 1);
  for (std::uint32_t i = 0; i < strays; ++i) {
    Pen pen;
    pen.radius = draws.between(0.4, 0.9);
    pen.ink = draws.between(60, 200);
    const double x = draws.between(0, kDigitsSide - 1), y = draws.between(0, kDigitsSide - 1);
    const double dx = draws.between(-4, 4), dy = draws.between(-4, 4);
    canvas.draw_line({x, y}, {x + dx, y + dy}, pen);
  }
}

}  // namespace

std::uint8_t draw_digit(std::uint64_t seed, DrawDomain domain, std::uint64_t index, std::span<std::uint8_t> pixels) {
  TG_CHECK(pixels.size() == std::size_t{kDigitsSide} * kDigitsSide, pixels.size());
  Draws draws(seed, domain, index);
  const std::uint8_t label = static_cast<std::uint8_t>(draws.below(10));
  const auto styles = glyphs_of(label);
  const Glyph& glyph = styles[draws.below(static_cast<std::uint32_t>(styles.size()))];
  Canvas canvas;
  draw_strays(draws, canvas);
  draw_glyph(glyph, draws, canvas);
  const double noise = draws.between(0, kMaxNoise);
  std::uint32_t word = 0;
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    word = i % 4 == 0 ? draws.word() : word >> 8;
    const double level = canvas.ink()[i] + noise * ((word & 0xff) / 127.5 - 1);
    pixels[i] = static_cast<std::uint8_t>(std::clamp(level, 0.0, 255.0));
  }
  return label;
}

namespace {

ImageSet draw_set(const DatasetOptions& options, DrawDomain domain, std::size_t count, ContentHash& hash) {
  ImageSet set;
  set.stored = {1, kDigitsSide, kDigitsSide};
  const std::size_t elements = set.stored.elements();
  set.pixels.resize(count * elements);
  set.labels.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto pixels = std::span(set.pixels).subspan(i * elements, elements);
    set.labels[i] = draw_digit(options.seed, domain, i, pixels);
    if (i % kHashedImageStep == 0) {
      hash.add(std::uint64_t{set.labels[i]});
      hash.add(pixels);
      options.advanced(i, count);
    }
  }
  return set;
}

}  // namespace

Result<Dataset> make_digits(const DatasetOptions& options) {
  const std::size_t train = options.synthetic_train != 0 ? options.synthetic_train : kDigitsTrain;
  const std::size_t test = options.synthetic_test != 0 ? options.synthetic_test : kDigitsTest;
  if (train > kMaxDigits || test > kMaxDigits) {
    return Error{ErrorKind::kInvalidJob, "the synthetic set holds at most " + std::to_string(kMaxDigits) +
                                             " images for training and as many for testing, not " +
                                             std::to_string(train > kMaxDigits ? train : test)};
  }
  ContentHash hash;
  for (const std::uint64_t word :
       {std::uint64_t{kDigitsVersion}, options.seed, std::uint64_t{train}, std::uint64_t{test}}) {
    hash.add(word);
  }
  Dataset data;
  data.kind = DatasetKind::kSynthetic;
  for (int digit = 0; digit < 10; ++digit) data.classes.push_back(std::to_string(digit));
  data.train = draw_set(options, DrawDomain::kDigitsTrain, train, hash);
  data.test = draw_set(options, DrawDomain::kDigitsTest, test, hash);
  data.hash = hash.value();
  return data;
}

}  // namespace tg::engine
