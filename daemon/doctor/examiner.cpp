#include "daemon/doctor/examiner.h"

#include <algorithm>
#include <chrono>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "daemon/doctor/host_checks.h"
#include "daemon/doctor/link_checks.h"
#include "kernels/base/log.h"
#include "schema/limits.h"

namespace tg::daemon {
namespace {

using Clock = std::chrono::steady_clock;

double now_seconds() { return std::chrono::duration<double>(Clock::now().time_since_epoch()).count(); }

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
    std::thread([config, deadline, report = current.report] { check_links(config, deadline, report); }).detach();
    std::thread([config, threads = patient_.threads, is_busy = !busy.empty(), report = current.report] {
      check_host(config, threads, is_busy, *report);
    }).detach();
  } catch (const std::system_error& error) {
    return current.answer(Error{ErrorKind::kFailed, node + " has no thread to examine on: " + error.what()});
  }
  last_ = current.report;
  current_ = std::move(current);
}

Seat Examiner::peer_of(std::size_t round) const {
  return Seat((patient_.config.seat().index() + round) % patient_.config.peers.size());
}

void Examiner::send(const LinkStream::Frames& frames) {
  if (frames.count == 0) return;
  const std::vector<std::byte> filler(LinkStream::kFrameBytes);
  for (std::uint32_t i = 0; i < frames.count; ++i)
    patient_.mesh.send(
        {peer_of(current_->round)},
        schema::encode_frame({current_->key, 0, 0}, schema::Probe{frames.first + i, true, filler}, patient_.pool));
}

void Examiner::begin_round(std::size_t round, double now) {
  current_->round = round;
  current_->stream = {};
  if (round == patient_.config.peers.size()) return;
  const Seat peer = peer_of(round);
  if (!patient_.mesh.up(peer)) {
    current_->unmeasured[peer] = "the link is not up";
    return;
  }
  current_->unmeasured[peer] = "nothing came through in " + std::to_string(current_->request.seconds) + " s";
  send(current_->stream.begin(now, current_->request.seconds));
}

void Examiner::end_round() {
  if (current_->round == 0 || current_->round == patient_.config.peers.size()) return;
  const Seat peer = peer_of(current_->round);
  current_->mbps[peer] = current_->stream.mbps();
  if (current_->mbps[peer] > 0) current_->unmeasured[peer].clear();
}

void Examiner::on_probe_reply(std::uint64_t key, Seat from, std::uint32_t number) {
  if (!current_ || current_->key != key || current_->round == 0 || from != peer_of(current_->round)) return;
  if (current_->facts.busy.empty()) send(current_->stream.acknowledged(number, now_seconds()));
}

void Examiner::tick() {
  if (!current_) return;
  const std::size_t nodes = patient_.config.peers.size();
  const double now = now_seconds(), ms = 1000 * (now - current_->began);
  const bool rounds = measuring() && nodes > 1;
  if (rounds && ms >= schema::examine_checks_ms(nodes)) {
    const double in_rounds = ms - schema::examine_checks_ms(nodes);
    const auto reached = 1 + static_cast<std::size_t>(in_rounds / schema::examine_round_ms(current_->request.seconds));
    const std::size_t round = std::min(reached, nodes);  // the last one is none
    if (round != current_->round) {
      end_round();
      begin_round(round, now);
    }
  }
  const bool measured = !rounds || current_->round == nodes;
  const int most = schema::examine_ms(nodes, current_->request.seconds) + schema::kExamineGraceMs;
  if ((measured && current_->report->done()) || ms >= most) finish();
}

void Examiner::finish() {
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
    link.up = patient_.mesh.up(peer);
    if (const std::optional<LinkProblem> problem = patient_.mesh.problem(peer)) {
      link.problem = problem->why;
      link.waiting_helps = problem->waiting_helps;
    }
    link.mbps = ended.mbps[peer];
    link.unmeasured = ended.unmeasured[peer];
  }
  facts.answered_ms = unix_time_ms();
  ended.answer(std::move(facts));
}

void Examiner::give_way(const std::string& why) {
  if (!current_) return;
  end_round();
  current_->round = 0;
  current_->facts.busy = why;
}

}  // namespace tg::daemon
