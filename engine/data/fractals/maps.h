// Systems of affine maps, and their orbits. Only + - * / in double: the same on every machine. Pure; any thread.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/data/draws.h"

namespace tg::engine {

// The map (x, y) -> (a x + b y + e, c x + d y + f), with coefficients in the order a, b, c, d, e, f.
using AffineMap = std::array<double, 6>;
using AffineMaps = std::vector<AffineMap>;

struct OrbitPoint {
  double x = 0, y = 0;
};

inline constexpr double kReach = 100;  // an orbit that goes further has no picture
inline constexpr int kTransient = 20;  // points before the first one that counts

// Fills `points` with an orbit from (0, 0): each point is a map's image of the previous one, the map being drawn with
// probability in proportion to |ad - bc| (16 bits of a word each). False if the orbit leaves the reach, or if all
// probabilities are 0; the points are then incomplete.
bool walk(const AffineMaps& maps, Draws& draws, std::span<OrbitPoint> points);

// Counts the orbit's points in each pixel of a size x size picture that its bounding box fills; row-major.
void count_hits(std::span<const OrbitPoint> points, int size, std::vector<std::uint32_t>& hits);

// The maps of a class: 2 to 7 of them with coefficients uniform in (-1, 1), drawn again until their orbit is bounded
// and fills its picture: kMinFill of the pixels of kSearchSize x kSearchSize by kSearchPoints points. Empty if no
// system among kMaxDraws does, which is very improbable.
inline constexpr int kSearchSize = 128;
inline constexpr std::size_t kSearchPoints = 25'000;
inline constexpr double kMinFill = 0.2;
inline constexpr int kMaxDraws = 100'000;
AffineMaps draw_maps(std::uint64_t seed, std::uint64_t class_index);

// Multiplies every coefficient by a factor of its own, uniform in 1 - strength to 1 + strength.
AffineMaps draw_variant(const AffineMaps& maps, double strength, Draws& draws);

}  // namespace tg::engine
