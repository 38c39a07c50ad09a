// Systems of affine maps, and their orbits. Only + - * / in double: the same on every machine. Pure; any thread.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/data/draws.h"

namespace tg::engine {

// (x, y) -> (a x + b y + e, c x + d y + f), coefficients in the order a, b, c, d, e, f.
using AffineMap = std::array<double, 6>;
using AffineMaps = std::vector<AffineMap>;

struct OrbitPoint {
  double x = 0, y = 0;
};

inline constexpr double kReach = 100;  // an orbit that goes further away has no picture
inline constexpr int kTransient = 20;  // points before the first one that counts

// Fills `points` with an orbit from (0, 0): each point is a map's image of the one before, the map drawn with
// probability in proportion to |ad - bc| (16 bits of a word each). False if it leaves the reach, or all probabilities
// are 0; the points are unfinished then.
bool walk(const AffineMaps& maps, Draws& draws, std::span<OrbitPoint> points);

// How often the orbit meets each pixel of a picture of size x size that its bounding box fills; row-major.
void count_hits(std::span<const OrbitPoint> points, int size, std::vector<std::uint32_t>& hits);

// The maps of a class: 2 to 7 of them with coefficients uniform in (-1, 1), drawn again until their orbit is bounded
// and fills its picture: kLeastFill of the pixels of kSearchSize x kSearchSize by kSearchPoints points. Empty if none
// of kMostDraws systems does, which nobody will see.
inline constexpr int kSearchSize = 128;
inline constexpr std::size_t kSearchPoints = 25'000;
inline constexpr double kLeastFill = 0.2;
inline constexpr int kMostDraws = 100'000;
AffineMaps draw_maps(std::uint64_t seed, std::uint64_t class_index);

// Every coefficient multiplied by its own factor, uniform in 1 - strength to 1 + strength.
AffineMaps draw_variant(const AffineMaps& maps, double strength, Draws& draws);

}  // namespace tg::engine
