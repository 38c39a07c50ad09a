#include "daemon/doctor/examiner.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "daemon/doctor/link_checks.h"
#include "daemon/doctor/node_checks.h"
#include "daemon/doctor/schedule.h"
#include "kernels/base/log.h"
#include "kernels/base/now.h"
#include "schema/limits.h"

namespace tg::daemon {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

void Examiner::examine(const schema::ExamineRequest& request, const std::string& busy, std::uint64_t key,
                       Answer answer) {
  const std::string& node = patient_.config.node;
  if (current_)
    return answer(Error{ErrorKind::kRefused, node + " is being examined already; ask again when that ends"});
  if (!last_.expired())
    return answer(Error{ErrorKind::kRefused, node +
                                                 " still hangs in its last examination (a name server or a disk that "
                                                 "does not answer); ask again in a minute"});
  Current current;
  current.request = request;
  current.answer = std::move(answer);
  current.key = key;
  current.began = now_seconds();
  current.report = std::make_shared<Report>();
  current.facts.asked_ms = request.asked_ms;
  current.facts.received_ms = unix_time_ms();
  current.facts.busy = busy;
  current.mbps.resize(patient_.config.peers.size());
  current.unmeasured.resize(patient_.config.peers.size());
  const auto deadline =
      Clock::now() + std::chrono::milliseconds(schema::examine_checks_ms(patient_.config.peers.size()));
  const schema::NodeConfig& config = patient_.config;
  try {
    std::thread([config, deadline, report = current.report] {
      try {
        check_links(config, deadline, report);
      } catch (const std::exception&) {  // no thread or memory left: nothing is known of the links
        report->links_done();
      }
    }).detach();
    std::thread([config, &compute = patient_.compute, threads = patient_.threads, is_busy = !busy.empty(),
                 report = current.report] {
      try {
        check_node(config, compute, threads, is_busy, *report);
      } catch (const std::exception&) {
        report->node_checks_failed();
      }
    }).detach();
  } catch (const std::system_error& error) {
    return current.answer(Error{ErrorKind::kFailed, node + " has no thread to examine on: " + error.what()});
  }
  last_ = current.report;
  current_ = std::move(current);
}

void Examiner::send(const LinkStream::Frames& frames) {
  if (frames.count == 0) return;
  const std::vector<std::byte> filler(LinkStream::kFrameBytes);
  for (std::uint32_t i = 0; i < frames.count; ++i)
    patient_.mesh.send(
        {*current_->receiver},
        schema::encode_frame({current_->key, 0, 0}, schema::Probe{frames.first + i, true, filler}, patient_.pool));
}

void Examiner::begin_slot(std::size_t slot, double now) {
  const std::size_t nodes = patient_.config.peers.size();
  current_->slot = slot;
  current_->receiver = slot < slots_for(nodes) ? receiver_in(slot, patient_.config.seat(), nodes) : std::nullopt;
  if (!current_->receiver) return;
  const double seconds = current_->request.seconds / 2.0;
  const bool up = patient_.mesh.links().is_up(*current_->receiver);
  char text[64];
  std::snprintf(text, sizeof text, "nothing came through in %.1f s", seconds);
  current_->unmeasured[*current_->receiver] = up ? text : "the link is not up";
  current_->stream = {};
  if (up) send(current_->stream.begin(now, seconds));
}

void Examiner::end_slot() {
  if (!current_->receiver) return;
  const Seat peer = *std::exchange(current_->receiver, std::nullopt);
  current_->mbps[peer] = current_->stream.mbps();
  if (current_->mbps[peer] > 0) current_->unmeasured[peer].clear();
}

void Examiner::on_probe_reply(std::uint64_t key, Seat from, std::uint32_t number) {
  if (current_ && current_->key == key && current_->receiver == from)
    send(current_->stream.acknowledged(number, now_seconds()));
}

void Examiner::tick() {
  if (!current_) return;
  const std::size_t nodes = patient_.config.peers.size(), slots = slots_for(nodes);
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
  const auto up = [this](Seat peer) { return patient_.mesh.links().is_up(peer); };
  const bool measured = !measuring() || !partner_ahead(current_->slot.value_or(0), patient_.config.seat(), nodes, up);
  const int most = schema::examine_ms(nodes, current_->request.seconds) + schema::kExamineGraceMs;
  if ((measured && current_->report->done()) || ms >= most) finish();
}

void Examiner::finish() {
  end_slot();
  Current ended = *std::move(current_);
  current_.reset();
  schema::Examination facts = ended.report->facts();
  facts.node = patient_.config.node;
  facts.build = patient_.build;
  facts.protocol = schema::kProtocolVersion;
  facts.asked_ms = ended.facts.asked_ms;
  facts.received_ms = ended.facts.received_ms;
  facts.busy = ended.facts.busy;
  for (std::size_t i = 0; i < facts.links.size(); ++i) {
    const Seat peer(i);
    schema::LinkFacts& link = facts.links[i];
    link.up = patient_.mesh.links().is_up(peer);
    if (const std::optional<LinkProblem> problem = patient_.mesh.links().problem(peer)) {
      link.problem = problem->why;
      link.waiting_helps = problem->may_recover;
    }
    link.mbps = ended.mbps[peer];
    link.unmeasured = ended.unmeasured[peer];
  }
  facts.answered_ms = unix_time_ms();
  ended.answer(std::move(facts));
}

void Examiner::give_way(const std::string& why) {
  if (!current_) return;
  end_slot();
  current_->facts.busy = why;
}

}  // namespace tg::daemon
