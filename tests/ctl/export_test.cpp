// metrics.jsonl as a table and as TensorBoard's events: published bytes, invalid lines, and the real tgctl with folders
// (tests/process/test_export.py has a mesh, and TensorBoard itself).
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "ctl/export/csv.h"
#include "ctl/export/event_file.h"
#include "tests/ctl/tgctl_process.h"

namespace tg::ctl {
namespace {

namespace fs = std::filesystem;

std::string hex(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) {
    char two[3];
    std::snprintf(two, sizeof two, "%02x", static_cast<unsigned char>(byte));
    text += two;
  }
  return text;
}

TEST(EventFile, ChecksumIsCrc32c) {
  EXPECT_EQ(crc32c("123456789"), 0xE3069283u);
  EXPECT_EQ(crc32c(""), 0u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAu);  // RFC 3720, B.4
}

// The bytes are those of TensorFlow's own writer.
TEST(EventFile, BytesOfARecord) {
  EXPECT_EQ(hex(version_event(1'500)), "09000000000000f83f1a0d" + hex("brain.Event:2"));
  EXPECT_EQ(hex(event_record("")),
            "0000000000000000"
            "29039807"
            "d8ea82a2");
  const MetricLine line{300, 1'500, {{"step", "300", 300}, {"loss", "0.5", 0.5}, {"time", "1970", std::nullopt}}};
  EXPECT_EQ(hex(event_of(line)),
            "09000000000000f83f"
            "10ac02"
            "2a0d"
            "0a0b"
            "0a04" +
                hex("loss") + "150000003f");
}

class Export : public testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& text) const {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name) << text;
    return (folder_ / name).string();
  }
  static std::string read(const fs::path& path) {
    std::ifstream stream(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  }
  Outcome to(const std::string& format, const std::string& from, std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"export", from, "--to", format, "-o", out_.string(), "--address", "127.0.0.1:1"});
    return tgctl_.run(more);
  }

  const TgctlProcess tgctl_{"export_test"};
  const fs::path folder_ = tgctl_.folder(), run_ = folder_ / "run", out_ = folder_ / "exported";
};

constexpr const char* kLines =
    "{\"step\":1,\"loss\":2.5,\"wait_seconds\":{\"node-b\":0.25},\"time\":\"2017-12-04T09:00:00.000Z\"}\n"
    "{\"step\":2,\"loss\":null,\"accuracy\":0.5,\"a \\\"b\\\",c\":\"x\\ny\",\"time\":\"2017-12-04T09:00:00.250Z\"}\n";

TEST_F(Export, TableHasAColumnForEachMetric) {
  file("run/metrics.jsonl", kLines);
  const Outcome outcome = to("csv", run_);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, (out_ / "metrics.csv").string() + "\n");
  EXPECT_EQ(read(out_ / "metrics.csv"),
            "step,loss,wait_seconds/node-b,time,accuracy,\"a \"\"b\"\",c\"\n"
            "1,2.5,0.25,2017-12-04T09:00:00.000Z,,\n"
            "2,,,2017-12-04T09:00:00.250Z,0.5,\"x\ny\"\n");
}

TEST_F(Export, NothingIsOverwrittenUnlessAsked) {
  file("run/metrics.jsonl", kLines);
  for (const std::string format : {"csv", "tensorboard"}) {
    const Outcome first = to(format, run_);
    ASSERT_EQ(first.code, 0) << first.err;
    const std::string path = first.out.substr(0, first.out.size() - 1), before = read(path);
    EXPECT_GT(before.size(), 50u);
    const Outcome again = to(format, run_);
    EXPECT_EQ(again.code, 1);
    EXPECT_EQ(again.err, "tgctl: " + path + " already exists; --force replaces it\n");
    EXPECT_EQ(to(format, run_, {"--force"}).code, 0);
    EXPECT_EQ(read(path), before);
  }
  EXPECT_TRUE(fs::exists(out_ / "events.out.tfevents.1512378000.tgd"));
  // The export of another run replaces it, because TensorBoard would merge the two.
  file("run/metrics.jsonl", "{\"step\":1,\"loss\":2.5}\n");
  const Outcome other = to("tensorboard", run_, {"--force"});
  EXPECT_EQ(other.code, 0);
  EXPECT_NE(other.err.find("has no times"), std::string::npos) << other.err;
  EXPECT_EQ(other.out, (out_ / "events.out.tfevents.0000000000.tgd").string() + "\n");
  EXPECT_FALSE(fs::exists(out_ / "events.out.tfevents.1512378000.tgd"));
}

TEST_F(Export, InvalidLinesAreNamedAndNothingIsWritten) {
  const std::string good = "{\"step\":1,\"loss\":2.5}\n";
  for (const std::string& odd : std::vector<std::string>{
           "odd\n", "[1]\n", "{\"loss\":1}\n", "{\"step\":-1}\n", "{\"step\":2", "{\"step\":2,\"time\":\"now\"}\n",
           "{\"step\":2,\"x\":\"\xff\"}\n", "{\"step\":2,\"x\":1e999}\n", std::string(70'000, '['), "\n",
           "{\"step\":2,\"x\":\"" + std::string(70'000, 'x') + "\"}\n"}) {
    const std::string path = file("run/metrics.jsonl", good + odd);
    for (const char* format : {"csv", "tensorboard"}) {
      const Outcome outcome = to(format, run_);
      EXPECT_EQ(outcome.code, 1) << odd;
      EXPECT_EQ(outcome.err, "tgctl: " + path + ":2: not a JSON object with a step number; fetch the run again\n");
      EXPECT_TRUE(fs::is_empty(out_)) << odd;
    }
  }
  std::string many = "{\"step\":1";
  for (int i = 0; i < 1100; ++i) many += ",\"m" + std::to_string(i) + "\":0";
  file("run/metrics.jsonl", many + "}\n");
  EXPECT_NE(to("csv", run_).err.find("more than 1000 metrics"), std::string::npos);
}

TEST_F(Export, Misuse) {
  const auto expect = [](const Outcome& outcome, int code, const std::string& part) {
    EXPECT_EQ(outcome.code, code) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_NE(outcome.err.find(part), std::string::npos) << outcome.err;
  };
  expect(to("xml", "first"), 2, "\"xml\" is not one of csv | tensorboard");
  expect(tgctl_.run({"export", "first", "-o", out_}), 2, "export needs --to FORMAT");
  expect(tgctl_.run({"export", "first", "--to", "csv"}), 2, "export needs -o DIR");
  expect(tgctl_.run({"export"}), 2, "export needs --to FORMAT");
  expect(to("csv", (folder_ / "none").string()), 4, "is neither a folder nor a run's name");
  fs::create_directories(run_);
  expect(to("csv", run_), 2, "metrics.jsonl does not exist; give a run, or a folder that tgctl fetch wrote");
  file("run/metrics.jsonl", "");
  expect(to("csv", run_), 1, "metrics.jsonl is empty: the run made no steps");
  fs::remove(run_ / "metrics.jsonl");
  fs::create_directories(run_ / "metrics.jsonl");
  expect(to("csv", run_), 1, "metrics.jsonl cannot be read: Is a directory");
  // A pipe that nobody writes into has no end, and neither has a device.
  const std::string page = folder_ / "page.html", metrics = run_ / "metrics.jsonl", record = run_ / "run.json";
  fs::remove(metrics);
  ASSERT_EQ(::mkfifo(metrics.c_str(), 0600), 0);
  expect(to("csv", run_), 1, "metrics.jsonl cannot be read: it is not a regular file");
  file("run/run.json", "{}");
  expect(tgctl_.run({"report", run_, "-o", page}), 1, "metrics.jsonl cannot be read: it is not a regular file");
  fs::create_symlink("/dev/zero", run_ / "views.jsonl");
  expect(tgctl_.run({"report", run_, "-o", page}), 2, "views.jsonl cannot be read: it is not a regular file");
  fs::remove(record);
  fs::create_symlink("/dev/zero", record);
  expect(tgctl_.run({"report", run_, "-o", page}), 2, "run.json cannot be read: it is not a regular file");
  expect(tgctl_.run({"start", metrics}), 2, "metrics.jsonl cannot be read: it is not a regular file; give a job file");
  expect(to("csv", "first"), 3, "no tgd answers");
}

}  // namespace
}  // namespace tg::ctl
