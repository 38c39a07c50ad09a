#include "ctl/format/doctor_report.h"
#include "ctl/terminal/console.h"
#include "ctl/verbs/verbs.h"
#include "schema/limits.h"

namespace tg::ctl {
namespace {

// Beyond the time that the nodes take, for their answers.
constexpr int kSlackMs = schema::kExamineGraceMs + schema::kControlReplyMs;

int fail_with_advice(const Error& error) {
  const int code = fail(error);
  if (error.kind == ErrorKind::kUnreachable)
    print_note(
        "doctor needs one node that answers: start tgd here and read its output (tgd --config FILE), or choose another "
        "node with --address");
  return code;
}

}  // namespace

int doctor(Client& client, const Command& command) {
  const std::uint64_t seconds = command.no_bandwidth ? 0 : command.seconds;
  const Result<schema::MeshStatus> mesh = client.ask_for<schema::MeshStatus>(schema::StatusRequest{});
  if (!mesh) return fail_with_advice(mesh.error());
  const std::size_t nodes = mesh->nodes.size();
  print_note(examination_outlook(nodes, seconds));
  const int expected_ms = schema::examine_ms(nodes, seconds);
  const schema::ExamineRequest request{false, static_cast<std::uint8_t>(seconds), command.link_mbps, 0};
  const Result<schema::Diagnosis> diagnosis =
      Client::as<schema::Diagnosis>(client.ask_with_probes(request, expected_ms + kSlackMs));
  if (!diagnosis) return fail_with_advice(diagnosis.error());
  print(command.json ? format_diagnosis_json(*diagnosis) : format_diagnosis(*diagnosis));
  return all_pass(*diagnosis) ? kOk : kChecksFailed;
}

}  // namespace tg::ctl
