#include "engine/data/fractals/maps.h"

#include <algorithm>

namespace tg::engine {
namespace {

constexpr std::size_t kMaxMaps = 7;

double size_of(const AffineMap& map) {
  const double determinant = map[0] * map[3] - map[1] * map[2];
  return determinant < 0 ? -determinant : determinant;
}

// The ends of the maps' shares of 0 .. 65535; false if all shares are 0.
bool shares_of(const AffineMaps& maps, std::array<std::uint32_t, kMaxMaps>& ends) {
  double all = 0;
  for (const AffineMap& map : maps) all += size_of(map);
  if (!(all > 0)) return false;
  double sum = 0;
  for (std::size_t i = 0; i < maps.size(); ++i) {
    sum += size_of(maps[i]);
    ends[i] = static_cast<std::uint32_t>(sum / all * 65536);
  }
  ends[maps.size() - 1] = 65536;  // whatever the rounding
  return true;
}

}  // namespace

bool walk(const AffineMaps& maps, Draws& draws, std::span<OrbitPoint> points) {
  std::array<std::uint32_t, kMaxMaps> ends{};
  if (!shares_of(maps, ends)) return false;
  double x = 0, y = 0;
  std::uint32_t word = 0;
  for (std::size_t i = 0; i < points.size() + kTransient; ++i) {
    word = i % 2 == 0 ? draws.word() : word >> 16;
    const std::uint32_t drawn = word & 0xffff;
    std::size_t chosen = 0;
    while (drawn >= ends[chosen]) ++chosen;
    const AffineMap& map = maps[chosen];
    const double next = map[0] * x + map[1] * y + map[4];
    y = map[2] * x + map[3] * y + map[5];
    x = next;
    if (!(x > -kReach && x < kReach && y > -kReach && y < kReach)) return false;
    if (i >= kTransient) points[i - kTransient] = {x, y};
  }
  return true;
}

void count_hits(std::span<const OrbitPoint> points, int size, std::vector<std::uint32_t>& hits) {
  hits.assign(static_cast<std::size_t>(size) * static_cast<std::size_t>(size), 0);
  OrbitPoint least = points.front(), most = least;
  for (const OrbitPoint& p : points) {
    least = {std::min(least.x, p.x), std::min(least.y, p.y)};
    most = {std::max(most.x, p.x), std::max(most.y, p.y)};
  }
  const double width = most.x - least.x, height = most.y - least.y;
  const double across = width > 0 ? size / width : 0, down = height > 0 ? size / height : 0;
  for (const OrbitPoint& p : points) {
    const int column = std::min(static_cast<int>((p.x - least.x) * across), size - 1);
    const int row = std::min(static_cast<int>((p.y - least.y) * down), size - 1);
    ++hits[static_cast<std::size_t>(row) * static_cast<std::size_t>(size) + static_cast<std::size_t>(column)];
  }
}

AffineMaps draw_maps(std::uint64_t seed, std::uint64_t class_index) {
  Draws draws(seed, DrawDomain::kFractalClass, class_index);
  std::vector<OrbitPoint> points(kSearchPoints);
  std::vector<std::uint32_t> hits;
  for (int tried = 0; tried < kMaxDraws; ++tried) {
    AffineMaps maps(2 + draws.below(kMaxMaps - 1));
    for (AffineMap& map : maps) {
      for (double& coefficient : map) coefficient = (draws.word() + 0.5) * 0x1p-31 - 1;
    }
    if (!walk(maps, draws, points)) continue;
    count_hits(points, kSearchSize, hits);
    const auto filled = std::ranges::count_if(hits, [](std::uint32_t h) { return h != 0; });
    if (static_cast<double>(filled) >= kMinFill * static_cast<double>(hits.size())) return maps;
  }
  return {};
}

AffineMaps draw_variant(const AffineMaps& maps, double strength, Draws& draws) {
  AffineMaps variant = maps;
  for (AffineMap& map : variant) {
    for (double& coefficient : map) coefficient *= draws.between(1 - strength, 1 + strength);
  }
  return variant;
}

}  // namespace tg::engine
