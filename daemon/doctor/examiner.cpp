#include "daemon/doctor/examiner.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "daemon/doctor/link_checks.h"
#include "daemon/doctor/node_checks.h"
#include "daemon/doctor/schedule.h"
#include "kernels/base/now.h"
#include "schema/limits.h"

namespace tg::daemon {

void Examiner::examine(const schema::ExamineRequest& request, const std::string& busy, std::uint64_t key,
                       Answer answer) {
  schema::NodeConfig config = context_.config;
  config.peers = context_.config.nodes.lines();
  if (current_)
    return answer(Error{ErrorKind::kRefused, config.node + " is being examined already; ask again when that ends"});
  if (!last_.expired())
    return answer(Error{ErrorKind::kRefused, config.node +
                                                 " still hangs in its last examination (a name server or a disk that "
                                                 "does not answer); ask again in a minute"});
  const std::size_t nodes = config.peers.size();
  Current current;
  current.request = request;
  current.answer = std::move(answer);
  current.key = key;
  current.began = now_seconds();
  current.progress = std::make_shared<ExaminationProgress>();
  current.facts.asked_ms = request.asked_ms;
  current.facts.received_ms = unix_time_ms();
  current.facts.busy = busy;
  current.mbps.resize(nodes);
  current.was_down.resize(nodes);
  try {
    const auto checks = std::chrono::milliseconds(schema::examine_checks_ms(nodes));
    check_links(config, std::chrono::steady_clock::now() + checks, current.progress);
    std::thread([config, threads = context_.threads, is_busy = !busy.empty(), progress = current.progress] {
      try {
        check_node(config, threads, is_busy, *progress);
      } catch (const std::exception&) {  // no memory left: the current check stays unfinished
        progress->end_node_checks();
      }
    }).detach();
  } catch (const std::system_error& error) {
    return current.answer(Error{ErrorKind::kFailed, config.node + " cannot start a thread: " + error.what() +
                                                        "; raise TasksMax= of the service (ulimit -u)"});
  }
  last_ = current.progress;
  current.config = std::move(config);
  current_ = std::move(current);
}

void Examiner::send(const LinkStream::Frames& frames) {
  if (frames.count == 0) return;
  const std::vector<std::byte> filler(LinkStream::kFrameBytes);
  for (std::uint32_t i = 0; i < frames.count; ++i)
    context_.mesh.send(
        {seat_of(*current_->receiver)},
        schema::encode_frame({current_->key, 0, 0}, schema::Probe{frames.first + i, true, filler}, context_.pool));
}

Seat Examiner::seat_of(Seat number) const {
  return *context_.config.nodes.place_of(current_->config.peers[number].name);
}

void Examiner::begin_slot(std::size_t slot, double now) {
  const std::size_t nodes = current_->config.peers.size();
  current_->slot = slot;
  current_->receiver = slot < slots_for(nodes) ? receiver_in(slot, current_->config.seat(), nodes) : std::nullopt;
  if (!current_->receiver) return;
  const bool up = context_.mesh.links().is_up(seat_of(*current_->receiver));
  current_->was_down[*current_->receiver] = !up;
  current_->stream = {};
  if (up) send(current_->stream.begin(now, current_->request.seconds / 2.0));
}

void Examiner::end_slot() {
  if (!current_->receiver) return;
  current_->mbps[*std::exchange(current_->receiver, std::nullopt)] = current_->stream.mbps();
}

void Examiner::on_probe_reply(std::uint64_t key, Seat from, std::uint32_t number) {
  if (current_ && current_->key == key && current_->receiver && seat_of(*current_->receiver) == from)
    send(current_->stream.acknowledged(number, now_seconds()));
}

void Examiner::tick() {
  if (!current_) return;
  const std::size_t nodes = current_->config.peers.size(), slots = slots_for(nodes);
  const double now = now_seconds(), ms = 1000 * (now - current_->began);
  const double in_slots = ms - schema::examine_checks_ms(nodes);
  if (measuring() && in_slots >= 0) {
    const auto reached = static_cast<std::size_t>(in_slots / schema::examine_slot_ms(current_->request.seconds));
    const std::size_t slot = std::min(reached, slots);  // the last one is none
    if (slot != current_->slot) {
      end_slot();
      begin_slot(slot, now);
    }
  }
  const bool measured = !measuring() || current_->slot == slots;
  const ExaminationProgress& progress = *current_->progress;
  const bool checked = progress.node_checks_done() && (progress.links_done() || in_slots >= 0);
  const int most = schema::examine_ms(nodes, current_->request.seconds) + schema::kExamineGraceMs;
  if ((measured && checked) || ms >= most) finish();
}

void Examiner::finish() {
  end_slot();
  const Current ended = *std::exchange(current_, std::nullopt);
  schema::Examination facts = ended.progress->facts();
  facts.node = context_.config.node;
  facts.build = context_.build;
  facts.asked_ms = ended.facts.asked_ms;
  facts.received_ms = ended.facts.received_ms;
  facts.busy = ended.facts.busy;
  for (std::size_t i = 0; i < facts.links.size(); ++i) {
    const Seat number(i), peer = *context_.config.nodes.place_of(facts.links[i].peer);
    schema::LinkFacts& link = facts.links[i];
    link.up = context_.mesh.links().is_up(peer) && !ended.was_down[number];
    if (const std::optional<LinkProblem> problem = context_.mesh.links().problem(peer)) {
      link.problem = problem->why;
      link.waiting_helps = problem->may_recover;
    }
    link.mbps = ended.mbps[number];
  }
  facts.answered_ms = unix_time_ms();
  ended.answer(std::move(facts));
}

void Examiner::stop_measuring(const std::string& why) {
  if (!current_) return;
  end_slot();
  current_->facts.busy = why;
}

}  // namespace tg::daemon
