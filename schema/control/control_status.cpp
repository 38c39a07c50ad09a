#include "schema/control/control_status.h"

#include "schema/text.h"
#include "schema/wire.h"

namespace tg::schema {
namespace {

// A reply that would be too large leaves runs out (encode_reply), all of them if need be.
constexpr std::size_t kNodeBytes = (capnp::sizeInWords<wire::Node>() + 8) * kWordBytes + 3 * kMostNameBytes +
                                   kMostAddressBytes + kMostDeviceBytes +
                                   3 * kMostReasonBytes;  // eight texts, each padded to a word
static_assert(kMostMembers * kNodeBytes + kMostBuildBytes + kFrameOverheadBytes <= kMostControlBytes,
              "the nodes alone fit a reply");

void put_run(wire::Run::Builder to, const RunStatus& run) {
  to.setId(text_of(run.id));
  to.setState(static_cast<std::uint16_t>(run.state));
  to.setReason(text_of(clip_text(run.reason, kMostReasonBytes)));
  to.setSinceMs(run.since_ms);
  to.setStartedMs(run.started_ms);
  to.setModel(text_of(clip_text(run.model, kMostNameBytes)));
  to.setData(text_of(clip_text(run.data, kMostNameBytes)));
  to.setExchange(text_of(clip_text(run.exchange, kMostNameBytes)));
  to.setCoding(text_of(clip_text(run.coding, kMostNameBytes)));
  to.setGradients(text_of(clip_text(run.gradients, kMostNameBytes)));
  to.setStep(run.step);
  to.setSteps(run.steps);
  to.setLoss(run.loss);
  to.setLearningRate(run.learning_rate);
  to.setEvaluated(run.evaluated);
  to.setEvaluationStep(run.evaluation_step);
  to.setEvaluationAccuracy(run.evaluation_accuracy);
  to.setEvaluationAccuracy5(run.evaluation_accuracy_5);
  to.setEvaluationLoss(run.evaluation_loss);
  to.setSamplesPerSecond(run.samples_per_second);
  to.setCodeBitsPerParameter(run.code_bits_per_parameter);
  to.setSentBitsPerParameter(run.sent_bits_per_parameter);
  to.setSentBytesPerStep(run.sent_bytes_per_step);
  to.setZeros(run.zeros);
  to.setParameters(run.parameters);
  to.setDigest(run.digest);
  to.setDigestStep(run.digest_step);
  to.setInitialDigest(run.initial_digest);
  auto members = to.initMembers(static_cast<capnp::uint>(run.members.size()));
  for (std::size_t i = 0; i < run.members.size(); ++i) {
    const MemberStatus& member = run.members[i];
    wire::Member::Builder slot = members[static_cast<capnp::uint>(i)];
    slot.setNode(text_of(member.node));
    slot.setState(static_cast<std::uint16_t>(member.state));
    slot.setStep(member.step);
    slot.setDigest(member.digest);
    slot.setDigestStep(member.digest_step);
    slot.setWaitShare(member.wait_share);
    slot.setPhase(static_cast<std::uint16_t>(member.phase));
    slot.setPhaseMs(member.phase_ms);
    slot.setPhaseLimitMs(member.phase_limit_ms);
    slot.setSave(static_cast<std::uint16_t>(member.save));
    slot.setProblem(text_of(clip_text(member.problem, kMostProblemBytes)));
    slot.setSamples(member.samples);
    slot.setDataWaitShare(member.data_wait_share);
  }
}

MemberStatus take_member(wire::Member::Reader from) {
  MemberStatus member;
  member.node = checked_node(from.getNode(), "member");
  member.state = checked_enum(from.getState(), RunState::kFailed, "member state");
  member.step = from.getStep();
  member.digest = from.getDigest();
  member.digest_step = from.getDigestStep();
  member.wait_share = from.getWaitShare();
  member.phase = checked_enum(from.getPhase(), Phase::kSave, "member phase");
  member.phase_ms = from.getPhaseMs();
  member.phase_limit_ms = from.getPhaseLimitMs();
  member.save = checked_enum(from.getSave(), kLastSaveState, "save");
  member.problem = checked_text(from.getProblem(), kMostProblemBytes, "problem");
  member.samples = from.getSamples();
  member.data_wait_share = from.getDataWaitShare();
  return member;
}

RunStatus take_run(wire::Run::Reader from) {
  RunStatus run;
  run.id = checked_run(from.getId(), "run id");
  run.state = checked_enum(from.getState(), RunState::kFailed, "run state");
  run.reason = checked_text(from.getReason(), kMostReasonBytes, "reason");
  run.since_ms = from.getSinceMs();
  run.started_ms = from.getStartedMs();
  run.model = checked_text(from.getModel(), kMostNameBytes, "model");
  run.data = checked_text(from.getData(), kMostNameBytes, "data");
  run.exchange = checked_text(from.getExchange(), kMostNameBytes, "exchange");
  run.coding = checked_text(from.getCoding(), kMostNameBytes, "coding");
  run.gradients = checked_text(from.getGradients(), kMostNameBytes, "gradients");
  run.step = from.getStep();
  run.steps = from.getSteps();
  run.loss = from.getLoss();
  run.learning_rate = from.getLearningRate();
  run.evaluated = from.getEvaluated();
  run.evaluation_step = from.getEvaluationStep();
  run.evaluation_accuracy = from.getEvaluationAccuracy();
  run.evaluation_accuracy_5 = from.getEvaluationAccuracy5();
  run.evaluation_loss = from.getEvaluationLoss();
  run.samples_per_second = from.getSamplesPerSecond();
  run.code_bits_per_parameter = from.getCodeBitsPerParameter();
  run.sent_bits_per_parameter = from.getSentBitsPerParameter();
  run.sent_bytes_per_step = from.getSentBytesPerStep();
  run.zeros = from.getZeros();
  run.parameters = from.getParameters();
  run.digest = from.getDigest();
  run.digest_step = from.getDigestStep();
  run.initial_digest = from.getInitialDigest();
  const auto members = from.getMembers();
  checked_below(members.size(), kMostMembers + 1, "members");
  for (const wire::Member::Reader member : members) run.members.push_back(take_member(member));
  return run;
}

}  // namespace

void put_mesh(wire::MeshStatus::Builder to, const MeshStatus& mesh, std::size_t run_count) {
  to.setNode(text_of(mesh.node));
  to.setBuild(text_of(clip_text(mesh.build, kMostBuildBytes)));
  to.setInsecure(mesh.insecure);
  auto nodes = to.initNodes(static_cast<capnp::uint>(mesh.nodes.size()));
  for (std::size_t i = 0; i < mesh.nodes.size(); ++i) {
    wire::Node::Builder slot = nodes[static_cast<capnp::uint>(i)];
    slot.setName(text_of(mesh.nodes[i].name));
    slot.setAddress(text_of(clip_text(mesh.nodes[i].address, kMostAddressBytes)));
    slot.setState(static_cast<std::uint16_t>(mesh.nodes[i].state));
    slot.setProblem(text_of(clip_text(mesh.nodes[i].problem, kMostReasonBytes)));
    const ComputeStatus& compute = mesh.nodes[i].compute;
    slot.setEngine(text_of(clip_text(compute.engine, kMostNameBytes)));
    slot.setDevice(text_of(clip_text(compute.device, kMostDeviceBytes)));
    slot.setMath(text_of(clip_text(compute.math, kMostNameBytes)));
    slot.setDeviceFree(compute.free_bytes);
    slot.setDeviceTotal(compute.total_bytes);
    slot.setDeviceProblem(text_of(clip_text(compute.problem, kMostReasonBytes)));
    slot.setWhyCpu(text_of(clip_text(compute.why_cpu, kMostReasonBytes)));
    slot.setModuleMissing(compute.module_missing);
  }
  auto runs = to.initRuns(static_cast<capnp::uint>(run_count));
  for (std::size_t i = 0; i < run_count; ++i) put_run(runs[static_cast<capnp::uint>(i)], mesh.runs[i]);
}

MeshStatus take_mesh(wire::MeshStatus::Reader from) {
  MeshStatus mesh;
  mesh.node = checked_node(from.getNode(), "node");
  mesh.build = checked_text(from.getBuild(), kMostBuildBytes, "build");
  mesh.insecure = from.getInsecure();
  const auto nodes = from.getNodes();
  checked_below(nodes.size(), kMostMembers + 1, "nodes");
  for (const wire::Node::Reader node : nodes) {
    mesh.nodes.push_back({checked_node(node.getName(), "node"),
                          checked_text(node.getAddress(), kMostAddressBytes, "address"),
                          checked_enum(node.getState(), NodeState::kUnreachable, "node state"),
                          checked_text(node.getProblem(), kMostReasonBytes, "problem"),
                          {checked_text(node.getEngine(), kMostNameBytes, "engine"),
                           checked_text(node.getDevice(), kMostDeviceBytes, "device"),
                           checked_text(node.getMath(), kMostNameBytes, "math"), node.getDeviceFree(),
                           node.getDeviceTotal(), checked_text(node.getDeviceProblem(), kMostReasonBytes, "problem"),
                           checked_text(node.getWhyCpu(), kMostReasonBytes, "reason"), node.getModuleMissing()}});
  }
  const auto runs = from.getRuns();
  checked_below(runs.size(), kMostRunsKept + 1, "runs");
  for (const wire::Run::Reader run : runs) mesh.runs.push_back(take_run(run));
  return mesh;
}

}  // namespace tg::schema
