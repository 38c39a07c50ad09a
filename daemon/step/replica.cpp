#include "daemon/step/replica.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <string>
#include <utility>

#include "kernels/base/check.h"
#include "kernels/kernels.h"

namespace tg::daemon {
namespace {

// The highest bit of the mantissa: the next update does not round it away.
constexpr std::uint32_t kFlippedBit = 1u << 22;
constexpr std::size_t kStagedElements = 64 * 1024;  // staged on the host, then copied to the state

// Values in host memory; what owns them, if anything has to be kept alive.
engine::ReadFloats read_from(std::span<const float> values, std::shared_ptr<const void> owner = nullptr) {
  return [values, owner = std::move(owner)](std::size_t first, std::span<float> to) -> Status {
    std::ranges::copy(values.subspan(first, to.size()), to.begin());
    return {};
  };
}

// Values that are in host memory already; copies stay for as long as they are read.
engine::ReadFloats copied(std::span<const float> values) {
  const auto copy = std::make_shared<const std::vector<float>>(values.begin(), values.end());
  return read_from(*copy, copy);
}

}  // namespace

Replica::Replica(kernels::MemorySpace& space, const engine::Model& model, int slot_count, std::uint64_t seed,
                 bool keeps_average, const engine::InitialFile* initial, const std::function<void()>& advance)
    : model_(model),
      segments_(model.segments),
      slot_count_(slot_count),
      keeps_average_(keeps_average),
      tensors_(space.make_kernels()),
      average_(space, keeps_average ? segments_.padded_count() : 0) {
  for (Half& half : halves_) {
    half.parameters = kernels::MemoryArray(space, segments_.padded_count());
    advance();
    for (int s = 0; s < slot_count; ++s) {
      half.slots.emplace_back(space, segments_.padded_count());
      advance();
    }
    half.statistics = AlignedArray<float>(model.statistics.padded_count());
  }
  initialize(seed, initial, advance);
  copy_frozen();
}

Replica::Replica(std::shared_ptr<const Replica> keeper)
    : keeper_(std::move(keeper)),
      model_(keeper_->model_),
      segments_(keeper_->segments_),
      slot_count_(keeper_->slot_count_),
      keeps_average_(keeper_->keeps_average_),
      committed_rounds_(keeper_->committed_rounds_),
      confirmed_rounds_(keeper_->confirmed_rounds_) {}

const Replica& Replica::state() const {
  if (keeps_state()) return *this;
  TG_CHECK(keeper_->committed_rounds_ == committed_rounds_ && keeper_->confirmed_rounds_ >= confirmed_rounds_,
           keeper_->committed_rounds_.value(), keeper_->confirmed_rounds_.value(), committed_rounds_.value(),
           confirmed_rounds_.value());
  return *keeper_;
}

void Replica::initialize(std::uint64_t seed, const engine::InitialFile* initial, const std::function<void()>& advance) {
  AlignedArray<float> staged(kStagedElements);
  for (std::size_t s = 0; s < segments_.size(); ++s) {
    const std::size_t count = segments_[s].padded_count();
    for (std::size_t first = 0; first < count; first += kStagedElements) {
      const std::span<float> values = staged.span().first(std::min(kStagedElements, count - first));
      const std::size_t begin = segments_[s].offset + first;
      if (initial != nullptr)
        initial->fill_segment(s, first, values);
      else
        engine::initialize(segments_[s], s, seed, first, values);
      tensors_->copy_in(std::as_bytes(values), halves_[0].parameters.floats().subspan(begin, values.size()));
      if (keeps_average_) tensors_->copy_in(std::as_bytes(values), average_.floats().subspan(begin, values.size()));
      advance();
    }
  }
  const std::span<float> statistics = halves_[0].statistics.span();
  if (initial == nullptr) return engine::initialize(model_.statistics, seed, statistics.data());
  for (std::size_t s = 0; s < model_.statistics.size(); ++s) {
    const engine::Segment& segment = model_.statistics[s];
    initial->fill_statistic(s, 0, statistics.subspan(segment.offset, segment.padded_count()));
  }
}

void Replica::make_room_for_best() {
  best_ = {AlignedArray<float>(segments_.padded_count()), AlignedArray<float>(model_.statistics.padded_count())};
}

Status Replica::fill(const engine::ReadFloats& from, kernels::Floats to, const std::function<void()>& advance) {
  AlignedArray<float> staged(std::min(kStagedElements, to.size()));
  for (std::size_t first = 0; first < to.size(); first += kStagedElements) {
    const std::span<float> values = staged.span().first(std::min(kStagedElements, to.size() - first));
    if (Status read = from(first, values); !read.ok()) return read;
    tensors_->copy_in(std::as_bytes(values), to.subspan(first, values.size()));
    advance();
  }
  return {};
}

Status Replica::restore(const StateArrays& arrays, Round round, const std::function<void()>& advance) {
  if (arrays.slots.size() != halves_[0].slots.size() || (keeps_average_ && !arrays.average))
    return Error{ErrorKind::kCorrupt, "the state of step " + std::to_string(round.value()) + " has " +
                                          std::to_string(arrays.slots.size()) + " slots" +
                                          (keeps_average_ && !arrays.average ? " and no average" : "") +
                                          " where the optimizer has " + std::to_string(slot_count_)};
  Half& half = halves_[current_];
  if (Status filled = fill(arrays.parameters, half.parameters.floats(), advance); !filled.ok()) return filled;
  for (std::size_t slot = 0; slot < arrays.slots.size(); ++slot)
    if (Status filled = fill(arrays.slots[slot], half.slots[slot].floats(), advance); !filled.ok()) return filled;
  if (keeps_average_)
    if (Status filled = fill(arrays.average, average_.floats(), advance); !filled.ok()) return filled;
  if (half.statistics.size() > 0)
    if (Status read = arrays.statistics(0, half.statistics.span()); !read.ok()) return read;
  if (keeps_best() && arrays.best) {
    for (std::size_t first = 0; first < segments_.padded_count(); first += kStagedElements) {
      const std::size_t count = std::min(kStagedElements, segments_.padded_count() - first);
      if (Status read = arrays.best(first, best_.parameters.span().subspan(first, count)); !read.ok()) return read;
      advance();
    }
    if (best_.statistics.size() > 0)
      if (Status read = arrays.best_statistics(0, best_.statistics.span()); !read.ok()) return read;
  }
  begin_at(round);
  return {};
}

std::vector<std::size_t> Replica::array_sizes() const {
  std::vector<std::size_t> sizes(space_arrays(), segments_.padded_count());
  sizes.push_back(halves_[current_].statistics.size());
  if (keeps_best()) sizes.insert(sizes.end(), {best_.parameters.size(), best_.statistics.size()});
  return sizes;
}

kernels::MemoryArray& Replica::array(std::size_t index) {
  Half& half = halves_[current_];
  return index == 0 ? half.parameters : index <= half.slots.size() ? half.slots[index - 1] : average_;
}

std::span<float> Replica::host_array(std::size_t index) {
  if (index == space_arrays()) return halves_[current_].statistics.span();
  return index == space_arrays() + 1 ? best_.parameters.span() : best_.statistics.span();
}

void Replica::give(std::size_t index, std::size_t first, std::span<float> values) const {
  auto& self = const_cast<Replica&>(*this);  // which is only read
  if (index >= space_arrays())
    std::ranges::copy(self.host_array(index).subspan(first, values.size()), values.begin());
  else
    copy_out(self.array(index).floats(), first, values);
}

void Replica::take(std::size_t index, std::size_t first, std::span<const float> values) {
  if (index >= space_arrays())
    std::ranges::copy(values, host_array(index).subspan(first, values.size()).begin());
  else
    tensors_->copy_in(std::as_bytes(values), array(index).floats().subspan(first, values.size()));
}

void Replica::begin_at(Round round) {
  committed_rounds_ = confirmed_rounds_ = round;
  averaged_ = 0;
  undone_ = false;
  copy_frozen();
}

void Replica::copy_frozen() {
  AlignedArray<float> staged(kStagedElements);
  for (const engine::Segment& segment : segments_.segments()) {
    const std::size_t end = segment.offset + (segment.frozen ? segment.padded_count() : 0);
    for (std::size_t first = segment.offset; first < end; first += kStagedElements) {
      const std::span<float> values = staged.span().first(std::min(kStagedElements, end - first));
      copy_out(parameters(), first, values);
      tensors_->copy_in(std::as_bytes(values), halves_[1 - current_].parameters.floats().subspan(first, values.size()));
    }
  }
}

kernels::ConstStateFloats Replica::committed(std::size_t begin, std::size_t count) const {
  const Half& half = halves_[current_];
  kernels::ConstStateFloats state{half.parameters.floats().subspan(begin, count), {}, {}};
  if (slot_count_ > 0) state.slot0 = half.slots[0].floats().subspan(begin, count);
  if (slot_count_ > 1) state.slot1 = half.slots[1].floats().subspan(begin, count);
  return state;
}

kernels::StateFloats Replica::next(std::size_t begin, std::size_t count) {
  Half& half = halves_[1 - current_];
  kernels::StateFloats state{half.parameters.floats().subspan(begin, count), {}, {}};
  if (slot_count_ > 0) state.slot0 = half.slots[0].floats().subspan(begin, count);
  if (slot_count_ > 1) state.slot1 = half.slots[1].floats().subspan(begin, count);
  return state;
}

void Replica::commit(std::span<const float> measured) {
  TG_CHECK(confirmed_rounds_ == committed_rounds_, confirmed_rounds_.value(), committed_rounds_.value());
  if (keeps_state()) {
    AlignedArray<float>& next = halves_[1 - current_].statistics;
    AlignedArray<float> target(next.size());
    engine::spread(model_.statistics, measured, target.span());
    std::ranges::copy(statistics(), next.begin());
    engine::follow_statistics(model_, target.span(), next.span());
  }
  current_ = 1 - current_;
  committed_rounds_ = committed_rounds_.next();
  undone_ = false;
  state();  // the keeper's must be this one
}

bool Replica::confirm(float average_rate, std::size_t most_elements) {
  TG_CHECK(committed_rounds_ == confirmed_rounds_.next(), committed_rounds_.value(), confirmed_rounds_.value());
  const std::size_t count = std::min(most_elements, average_.size() - averaged_);
  if (count > 0)
    tensors_->average(parameters().subspan(averaged_, count), average_rate,
                      average_.floats().subspan(averaged_, count));
  averaged_ += count;
  if (averaged_ < average_.size()) return false;
  averaged_ = 0;
  confirmed_rounds_ = committed_rounds_;
  return true;
}

void Replica::undo() {
  TG_CHECK(keeps_state(), committed_rounds_.value());
  TG_CHECK(committed_rounds_ == confirmed_rounds_.next() && averaged_ == 0, committed_rounds_.value(),
           confirmed_rounds_.value(), averaged_);
  current_ = 1 - current_;
  committed_rounds_ = confirmed_rounds_;
  undone_ = true;
}

void Replica::redo() {
  TG_CHECK(std::exchange(undone_, false), committed_rounds_.value());
  current_ = 1 - current_;
  committed_rounds_ = committed_rounds_.next();
}

void Replica::keep_best() {
  TG_CHECK(keeps_best() && confirmed_rounds_ == committed_rounds_, confirmed_rounds_.value());
  copy_out(average(), 0, best_.parameters.span());
  std::ranges::copy(statistics(), best_.statistics.begin());
}

std::vector<std::uint64_t> Replica::segment_digests() const {
  if (!keeps_state()) return state().segment_digests();
  std::vector<std::uint64_t> digests;
  digests.reserve(segments_.size() + model_.statistics.size());
  for (std::size_t s = 0; s < segments_.size(); ++s) {
    const std::size_t begin = segments_[s].offset, count = segments_[s].padded_count();
    const auto hash = [&](kernels::ConstFloats values, std::uint64_t array) {
      return tensors_->digest(values.subspan(begin, count), 0, s * 4 + array);
    };
    std::uint64_t digest = hash(parameters(), 0) + (keeps_average_ ? hash(average(), 3) : 0);
    for (int slot_index = 0; slot_index < slot_count_; ++slot_index)
      digest += hash(slot(slot_index), static_cast<std::uint64_t>(slot_index) + 1);
    digests.push_back(digest);
  }
  const engine::SegmentTable& table = model_.statistics;
  for (std::size_t s = 0; s < table.size(); ++s)
    digests.push_back(kernels::available().back()->digest(
        statistics().subspan(table[s].offset, table[s].padded_count()), 0, (segments_.size() + s) * 4));
  return digests;
}

std::uint64_t Replica::combine(const std::vector<std::uint64_t>& segment_digests) {
  std::uint64_t digest = 0;
  for (const std::uint64_t part : segment_digests) digest += part;
  return digest;
}

void Replica::copy_out(kernels::ConstFloats array, std::size_t first, std::span<float> values) const {
  state().tensors_->copy_out(array.subspan(first, values.size()), std::as_writable_bytes(values));
}

void Replica::flip_bit(std::size_t element) {
  std::uint32_t bits = 0;
  const kernels::Floats place = halves_[current_].parameters.floats().subspan(element, 1);
  tensors_->copy_out(place, std::as_writable_bytes(std::span(&bits, 1)));
  bits ^= kFlippedBit;
  tensors_->copy_in(std::as_bytes(std::span(&bits, 1)), place);
}

std::size_t Replica::bytes(const engine::Model& model, int slot_count, bool keeps_average) {
  const std::size_t arrays = 2 * (1 + static_cast<std::size_t>(slot_count)) + (keeps_average ? 1 : 0);
  return arrays * whole_bytes(model.segments.padded_count() * sizeof(float)) +
         2 * whole_bytes(model.statistics.padded_count() * sizeof(float));
}

std::size_t Replica::best_bytes(const engine::Model& model) {
  return whole_bytes(model.segments.padded_count() * sizeof(float)) +
         whole_bytes(model.statistics.padded_count() * sizeof(float));
}

// --- its arrays ---

namespace {

// read: what reads an array of its memory space; read_host: one in host memory.
template <class Read, class ReadHost>
StateArrays read_by(const Replica& replica, Read read, ReadHost read_host) {
  StateArrays arrays;
  arrays.parameters = read(replica.parameters());
  for (int slot = 0; slot < replica.slot_count(); ++slot) arrays.slots.push_back(read(replica.slot(slot)));
  if (replica.keeps_average()) arrays.average = read(replica.average());
  arrays.statistics = read_host(replica.statistics());
  if (replica.keeps_best()) {
    arrays.best = read_host(replica.best().parameters.span());
    arrays.best_statistics = read_host(replica.best().statistics.span());
  }
  return arrays;
}

}  // namespace

StateArrays arrays_of(const Replica& replica, const std::function<void()>& advance) {
  const auto read = [&](kernels::ConstFloats array) -> engine::ReadFloats {
    return [&replica, array, advance](std::size_t first, std::span<float> values) -> Status {
      try {
        replica.copy_out(array, first, values);
      } catch (const std::exception& error) {
        return Error{ErrorKind::kFailed, std::string("the state cannot be read: ") + error.what()};
      }
      advance();
      return {};
    };
  };
  return read_by(replica, read, [](std::span<const float> values) { return read_from(values); });
}

StateArrays copy_of(const Replica& replica, std::size_t padded_count) {
  const auto copy = [&](kernels::ConstFloats array) -> engine::ReadFloats {
    const auto values = std::make_shared<AlignedArray<float>>(padded_count);
    replica.copy_out(array, 0, values->span());
    return read_from(values->span(), values);
  };
  return read_by(replica, copy, copied);
}

}  // namespace tg::daemon
