#include "ctl/report/misclassifications.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "ctl/format/table.h"
#include "ctl/report/data_page.h"
#include "ctl/report/markup.h"
#include "schema/text.h"

namespace tg::ctl {
namespace {

constexpr std::size_t kFewClasses = 20;   // numbers fit in the cells
constexpr std::size_t kSomeClasses = 50;  // cells may be larger than with more
constexpr std::size_t kMaxLabel = 16;     // code points of a class's name at the matrix
constexpr std::size_t kShortLabel = 3;    // longest name that is horizontal above a column
constexpr double kGlyph = 0.62;           // average width of a glyph, in its height
constexpr double kAxis = 18, kGap = 5;    // an axis's title; between a label and the cells
constexpr double kRecall = 52;            // column
constexpr double kFewWidth = 480, kManyWidth = 1050;

double share_of(std::uint64_t count, std::uint64_t of) {
  return of == 0 ? 0 : static_cast<double>(count) / static_cast<double>(of);
}

class Matrix {
 public:
  explicit Matrix(const schema::Misclassifications& found)
      : found_(found),
        classes_(found.classes.size()),
        few_(classes_ <= kFewClasses),
        cell_(classes_ <= 12             ? 40
              : few_                     ? 28
              : classes_ <= kSomeClasses ? 17
                                         : 9),
        font_(few_                       ? 12
              : classes_ <= kSomeClasses ? 10
                                         : 8) {
    std::size_t longest = 1;
    for (const std::string& name : found.classes) {
      labels_.push_back(fit_line(name, kMaxLabel));
      longest = std::max(longest, schema::text_width(labels_.back()));
    }
    upright_ = few_ && longest <= kShortLabel;
    const double label = static_cast<double>(longest) * font_ * kGlyph + kGap;
    left_ = kAxis + kGap + label;
    top_ = kAxis + (upright_ ? font_ + kGap : label);
  }

  std::string svg() const {
    const double side = cell_ * static_cast<double>(classes_);
    const double width = std::max(left_ + side + kRecall, few_ ? kFewWidth : kManyWidth);
    std::string text = "<svg viewBox=\"0 0 " + px(width) + " " + px(top_ + side + 1) + "\" class=\"matrix" +
                       (few_ ? " few" : "") + "\" role=\"img\"><title>Confusion matrix</title>\n<g font-size=\"" +
                       px(std::max(font_, 10.0)) + "\">" + label(left_ + side / 2, font_, "middle", "predicted class") +
                       turned(font_, top_ + side / 2, "middle", "actual class") +
                       label(left_ + side + kRecall - kGap, top_ - kGap, "end", "recall") + "</g>\n<g font-size=\"" +
                       px(font_) + "\">\n";
    for (std::size_t row = 0; row < classes_; ++row) text += row_of(row);
    for (std::size_t column = 0; column < classes_; ++column)
      text += upright_ ? label(x(column) + cell_ / 2, top_ - kGap, "middle", labels_[column])
                       : turned(x(column) + middle(), top_ - kGap, "start", labels_[column]);
    text += "</g>\n<rect class=\"frame\" x=\"" + px(left_) + "\" y=\"" + px(top_) + "\" width=\"" + px(side) +
            "\" height=\"" + px(side) + "\"/>\n";
    return text + "</svg>\n";
  }

 private:
  double x(std::size_t column) const { return left_ + cell_ * static_cast<double>(column); }
  double y(std::size_t row) const { return top_ + cell_ * static_cast<double>(row); }
  double middle() const { return cell_ / 2 + font_ * 0.35; }  // baseline of text in a cell
  static std::string text_at(const std::string& place, const char* anchor, const std::string& text) {
    return "<text " + place + " text-anchor=\"" + anchor + "\">" + escaped(text) + "</text>";
  }
  static std::string label(double x, double y, const char* anchor, const std::string& text) {
    return text_at("x=\"" + px(x) + "\" y=\"" + px(y) + "\"", anchor, text);
  }
  static std::string turned(double x, double y, const char* anchor, const std::string& text) {
    return text_at("transform=\"translate(" + px(x) + " " + px(y) + ") rotate(-90)\"", anchor, text);
  }

  std::string row_of(std::size_t row) const {
    const std::uint32_t* const counts = found_.counts.data() + row * classes_;
    std::uint64_t of = 0;
    for (std::size_t column = 0; column < classes_; ++column) of += counts[column];
    std::string text = label(left_ - kGap, y(row) + middle(), "end", labels_[row]);
    for (std::size_t column = 0; column < classes_; ++column)
      if (counts[column] > 0) text += cell(row, column, counts[column], of);
    const double recall = share_of(counts[row], of);
    return text +
           label(x(classes_) + kRecall - kGap, y(row) + middle(), "end", of == 0 ? "-" : format_percent(recall, 1)) +
           "\n";
  }
  // Depths make a few misclassified samples visible, and keep numbers readable.
  std::string cell(std::size_t row, std::size_t column, std::uint32_t count, std::uint64_t of) const {
    const bool hit = row == column;
    constexpr double kLeast = 0.06, kSeldom = 1.6;
    const double deepest = few_ ? 0.5 : 0.9, share = share_of(count, of);
    const double depth = kLeast + (deepest - kLeast) * (hit ? share : std::min(kSeldom * std::sqrt(share), 1.0));
    std::string text = "<rect class=\"" + std::string(hit ? "hit" : "miss") + "\" x=\"" + px(x(column)) + "\" y=\"" +
                       px(y(row)) + "\" width=\"" + px(cell_) + "\" height=\"" + px(cell_) + "\" fill-opacity=\"" +
                       format_fixed(depth, 2) + "\">" +
                       element("title", found_.classes[row] + " classified as " + found_.classes[column] + ": " +
                                            std::to_string(count) + " of " + std::to_string(of)) +
                       "</rect>";
    if (few_) text += label(x(column) + cell_ / 2, y(row) + middle(), "middle", std::to_string(count));
    return text;
  }

  const schema::Misclassifications& found_;
  const std::size_t classes_;
  const bool few_;
  const double cell_, font_;
  std::vector<std::string> labels_;
  bool upright_ = false;
  double left_ = 0, top_ = 0;
};

std::string accuracy_text(const schema::Misclassifications& found, const schema::RunStatus& run) {
  const double accuracy = share_of(found.correct, found.samples);
  std::string text = found.node + " evaluated the model of step " + std::to_string(found.step) + ": " +
                     std::to_string(found.correct) + " of " + std::to_string(found.samples) +
                     " test samples are correct, " + format_percent(accuracy, 2) + ".";
  if (run.evaluated && run.evaluation_step == found.step && run.evaluation_accuracy != accuracy)
    text += " The run's own evaluation had " + format_percent(run.evaluation_accuracy, 2) +
            ": with other processors, devices or threads, close decisions may differ.";
  return element("p", text) + "\n";
}

std::string confusion_list(const schema::Misclassifications& found) {
  if (found.confusions.empty()) return "";
  std::string text = "<div>\n<h3>Most confused</h3>\n<ul>\n";
  for (const schema::Confusion& pair : found.confusions)
    text += element("li", pair.actual + " classified as " + pair.predicted + ": " + std::to_string(pair.count) +
                              " of " + std::to_string(pair.total) + " (" +
                              format_percent(share_of(pair.count, pair.total), 1) + ")") +
            "\n";
  return text + "</ul>\n</div>\n";
}

Result<std::string> worst_section(const schema::Misclassifications& found) {
  std::string text = "<h2>Worst misclassifications</h2>\n";
  if (found.correct == found.samples) return text + element("p", "None: all samples are correct.") + "\n";
  if (found.worst.empty()) return text + element("p", "These samples are not pictures.") + "\n";
  text += element("p", "The " + std::to_string(found.worst.size()) + " test samples with the greatest loss.", "soft") +
          "\n<div class=\"pictures\">\n";
  for (const schema::Misclassification& one : found.worst) {
    const Result<std::string> png = png_of(one.picture);
    if (!png) return png.error();
    text += "<figure><img alt=\"\" src=\"data:image/png;base64," + base64(*png) + "\">" +
            element("span", "predicted " + one.predicted + " (" + format_percent(one.probability, 0) + "), actual " +
                                one.picture.label) +
            "</figure>\n";
  }
  return text + "</div>\n";
}

}  // namespace

Result<std::string> misclassification_section(const schema::Misclassifications& found, const schema::RunStatus& run) {
  const std::size_t classes = found.classes.size();
  if (found.counts.size() != classes * classes)
    return Error{ErrorKind::kCorrupt, "the confusion matrix has an invalid size; have tgctl and tgd the same version?"};
  std::string text = "<h2>Confusion matrix</h2>\n" + accuracy_text(found, run) + "<div class=\"beside\">\n";
  if (classes == 0)
    text += element("p", "Its " + std::to_string(found.class_count) +
                             " classes are too many for a matrix, which has at most " +
                             std::to_string(schema::kMaxMatrixClasses) + ".") +
            "\n";
  else
    text +=
        std::string("<figure") + (classes <= kFewClasses ? "" : " class=\"whole\"") + ">" + Matrix(found).svg() +
        element("p",
                "Rows are actual classes, columns are predicted ones. A deeper colour is a larger share of the row; "
                "the diagonal is correct. Recall: the correct share of the row.",
                "soft") +
        "</figure>\n";
  const Result<std::string> pictures = worst_section(found);
  if (!pictures) return pictures;
  return text + confusion_list(found) + "</div>\n" + *pictures;
}

}  // namespace tg::ctl
