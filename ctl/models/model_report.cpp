#include "ctl/models/model_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "ctl/format/table.h"
#include "ctl/models/model_table.h"

namespace tg::ctl {
namespace {

using Json = nlohmann::ordered_json;

std::string grouped(std::int64_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t at = digits.size(); at > 3;) digits.insert(at -= 3, ",");
  return digits;
}

std::string padded(std::string text, std::size_t width) {
  return std::string(width - std::min(width, text.size()), ' ') + text;
}

std::string format_operations(std::int64_t operations) {
  const double millions = static_cast<double>(operations) / 1e6;
  return format_fixed(millions, millions < 10 ? 1 : 0);
}

}  // namespace

std::string format_models() {
  Rows rows{{"MODEL", " PARAMETERS", "MFLOP", "INPUT", "MIN SIZE"}};
  std::vector<std::string> notes{""};
  for (const ModelRow& row : model_rows()) {
    const std::string side = std::to_string(row.least_side);
    rows.push_back({to_word(row.kind), padded(grouped(row.parameters), sizeof "132,863,336" - 1),
                    padded(format_operations(row.operations), sizeof "15218" - 1),
                    std::to_string(row.channels) + "x" + std::to_string(row.height) + "x" + std::to_string(row.width),
                    side + "x" + side});
    notes.push_back(row.what);
  }
  return format_table(rows, notes) + "\n" +
         format_text(
             "INPUT: the published channels, height and width; other sizes work too, squares of at least MIN SIZE. "
             "PARAMETERS and MFLOP (millions of operations in a sample's forward pass, a multiply-add being two) are "
             "for that input.");
}

std::string format_models_json() {
  Json models = Json::array();
  for (const ModelRow& row : model_rows())
    models.push_back({{"name", to_word(row.kind)},
                      {"input", {row.channels, row.height, row.width}},
                      {"least_side", row.least_side},
                      {"parameters", row.parameters},
                      {"forward_flop_per_sample", row.operations},
                      {"trainable", true},
                      {"what", row.what}});
  return Json{{"schema_version", kModelsJsonVersion}, {"models", std::move(models)}}.dump(2) + "\n";
}

}  // namespace tg::ctl
