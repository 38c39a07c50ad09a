#include "ctl/report/comparison_page.h"

#include "ctl/format/comparison.h"
#include "ctl/report/chart.h"
#include "ctl/report/markup.h"
#include "ctl/report/sheet.h"

namespace tg::ctl {
namespace {

struct Compared {
  const char* title;
  Series Curves::*series;
  bool logarithmic = false, percent = false;
};
constexpr Compared kCompared[] = {{"Loss", &Curves::loss, true},
                                  {"Accuracy on the test set", &Curves::accuracy, false, true},
                                  {"Loss on the test set", &Curves::evaluation_loss, true},
                                  {"Learning rate", &Curves::learning_rate},
                                  {"Share of zero codes", &Curves::zeros, false, true},
                                  {"Bits per parameter and step, all that a member sent", &Curves::sent_bits},
                                  {"Samples per second, all members", &Curves::samples_per_second}};

}  // namespace

std::string comparison_page(const std::vector<schema::RunStatus>& runs, const std::vector<Curves>& curves) {
  std::vector<std::string> names;
  for (const schema::RunStatus& run : runs) names.push_back(run.id);
  std::string page = begin_page("Runs compared", 0) + element("h1", "Runs compared") + "\n<h2>Differences</h2>\n";
  const Rows rows = comparison_rows(runs);
  page += rows.size() == 1 ? element("p", "None.") : table(rows.front(), {rows.begin() + 1, rows.end()});
  page += "<h2>Over the steps</h2>\n<div class=\"charts\">\n";
  for (const Compared& one : kCompared) {
    Chart chart{.title = one.title,
                .lines = {},
                .names = names,
                .band = false,
                .logarithmic = one.logarithmic,
                .percent = one.percent};
    for (const Curves& of_run : curves) chart.lines.push_back(&(of_run.*one.series));
    page += figure(chart);
  }
  return page + "</div>\n" + kEndOfPage;
}

}  // namespace tg::ctl
