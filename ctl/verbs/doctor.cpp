#include <chrono>

#include "ctl/format/doctor_report.h"
#include "ctl/terminal/console.h"
#include "ctl/verbs/verbs.h"
#include "schema/limits.h"

namespace tg::ctl {
namespace {

// Beyond what the nodes take: for their answers.
constexpr int kSlackMs = schema::kExamineGraceMs + schema::kControlReplyMs;

// A node that does not answer cannot say what is wrong with it.
int nobody_asked(const Error& error) {
  const int code = fail(error);
  if (error.kind == ErrorKind::kUnreachable)
    print_note(
        "doctor needs one node that answers: start tgd here and read what it says (tgd --config FILE), or ask another "
        "node with --address");
  return code;
}

}  // namespace

int doctor(Client& client, const Command& command) {
  const std::uint64_t seconds = command.no_bandwidth ? 0 : command.seconds;
  const Result<schema::MeshStatus> mesh = client.ask_for<schema::MeshStatus>(schema::StatusRequest{});
  if (!mesh) return nobody_asked(mesh.error());
  const std::size_t nodes = mesh->nodes.size();
  print_note(examination_outlook(nodes, seconds));
  const int expected_ms = schema::examine_ms(nodes, seconds);
  LiveLine live;  // counts the seconds, on a terminal
  const auto began = std::chrono::steady_clock::now();
  const ProgressPoll poll{
      schema::VersionRequest{}, [&](const schema::ReplyBody&) {
        const auto passed = std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - began);
        if (LiveLine::possible())
          live.show("examining: " + std::to_string(passed.count()) + " s of about " +
                    std::to_string((expected_ms + 999) / 1000) + " s");
        return false;
      }};
  const schema::ExamineRequest request{false, static_cast<std::uint8_t>(seconds), command.link_mbps, 0};
  const Result<schema::Diagnosis> diagnosis =
      Client::as<schema::Diagnosis>(client.ask_with_probes(request, expected_ms + kSlackMs, &poll));
  live.end();
  if (!diagnosis) return nobody_asked(diagnosis.error());
  print(command.json ? format_diagnosis_json(*diagnosis) : format_diagnosis(*diagnosis));
  return all_pass(*diagnosis) ? kOk : kChecksFailed;
}

}  // namespace tg::ctl
