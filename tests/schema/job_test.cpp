// Jobs: what a user may write, what is said when it is wrong, and the canonical text that travels.
#include "schema/options/job.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "schema/control/status.h"
#include "schema/limits.h"
#include "schema/options/unused_keys.h"

namespace tg::schema {
namespace {

std::string error_of(std::string_view text) {
  const Result<JobSpec> job = parse_job(text, "x.job");
  return job.ok() ? "" : job.error().message;
}

TEST(Job, ReadsAFile) {
  const Result<JobSpec> job = parse_job(
      "# a comment\n"
      "model = cifarnet\r\n"
      "\n"
      "  data=cifar10   # behind a value\n"
      "learning-rate = 1e-3\n"
      "start-timeout = 2m\n"
      "data-dir = /data/cifar 10\n",
      "x.job");
  ASSERT_TRUE(job.ok()) << job.error().message;
  EXPECT_EQ(job->model, ModelKind::kCifarnet);
  EXPECT_EQ(job->data, DatasetKind::kCifar10);
  EXPECT_EQ(job->learning_rate, 1e-3);
  EXPECT_EQ(job->start_timeout_ms, 120'000u);
  EXPECT_EQ(job->data_dir, "/data/cifar 10");
  EXPECT_EQ(job->steps, JobSpec().steps);
}

TEST(Job, UnknownKeyNamesLineAndNearest) {
  EXPECT_EQ(error_of("steps = 5\n\nglobal-batc = 3\n"),
            "x.job:3: unknown key \"global-batc\"; did you mean \"global-batch\"? tgctl help job explains all keys");
  EXPECT_EQ(error_of("global_batch = 3\n"),
            "x.job:1: unknown key \"global_batch\"; did you mean \"global-batch\"? tgctl help job explains all keys");
  EXPECT_EQ(error_of("hue = red\n"), "x.job:1: unknown key \"hue\"; tgctl help job explains all keys");
  for (const auto& [word, key] : {std::pair("iterations", "steps"), std::pair("lr", "learning-rate"),
                                  std::pair("batch_size", "global-batch"), std::pair("dataset", "data")}) {
    const std::string message = error_of(std::string(word) + " = 3\n");
    EXPECT_NE(message.find("did you mean \"" + std::string(key) + "\"?"), std::string::npos) << message;
  }
}

TEST(Job, PytorchsNamesLeadToAKey) {
  for (const auto& [word, key] : {std::pair("gamma", "schedule-factor"), std::pair("pretrained", "initial")})
    EXPECT_NE(error_of(std::string(word) + " = 3\n").find("did you mean \"" + std::string(key) + "\"? tgctl help job"),
              std::string::npos)
        << word;
  EXPECT_EQ(error_of("peer_timeout = 2s\n"),
            "x.job:1: unknown key \"peer_timeout\"; it is a key of a node's tgd.conf, which tgctl help node explains; "
            "tgctl help job explains all keys");
}

TEST(Job, UnusedKeysAreNamedWithTheirLine) {
  const auto unused = [](const std::string& text, std::initializer_list<const char*> settings = {}) {
    Result<JobSpec> job = parse_job(text, "x.job");
    EXPECT_TRUE(job.ok()) << text;
    for (const char* setting : settings) EXPECT_TRUE(override_job_key(*job, setting).ok()) << setting;
    std::string all;
    for (const std::string& one : unused_keys(*job, text, "x.job")) all += one + "\n";
    return all;
  };
  EXPECT_EQ(unused("schedule-every = 300\n"),
            "x.job:1: schedule-every = 300 has no effect: it is for schedule = staircase; schedule is constant\n");
  EXPECT_EQ(unused("schedule = staircase\nschedule-every = 300\nschedule-factor = 0.5\n"), "");
  EXPECT_EQ(unused("steps = 100\nwarm-up = 500\n"),
            "x.job:2: warm-up = 500 leaves no step of the run at learning-rate; steps is 100 (line 1)\n");
  EXPECT_EQ(unused("schedule = cosine\nschedule-floor = 0.001\nwarm-up = 10\n"), "");
  EXPECT_EQ(
      unused("data-dir = /srv/mnist\n"),
      "x.job:1: data-dir = /srv/mnist has no effect: it is for data that are read from files; data is synthetic\n");
  EXPECT_EQ(unused("", {"data-dir=/srv/mnist"}).find("data-dir = /srv/mnist has no effect"), 0u) << "no line";
  EXPECT_EQ(unused("data-dir = /srv/mnist\ninitial = first.safetensors\n"), "") << "which lies there";
  EXPECT_EQ(unused("steps = 1000\nseed = 2\nepochs = 3\n"),
            "x.job:1: steps = 1000 has no effect: it is for runs without epochs; epochs is 3 (line 3)\n");
  EXPECT_EQ(unused("steps = 200\n", {"epochs=3"}), "") << "said later";
  EXPECT_EQ(unused("epochs = 3\n", {"steps=70"}), "");
  EXPECT_NE(
      unused("optimizer = adam\nmomentum = 0.5\n").find("it is for optimizer = momentum; optimizer is adam (line 1)"),
      std::string::npos);
  EXPECT_EQ(unused(canonical_job({})), "") << "a file may list every key";
}

TEST(Job, ShellSyntaxIsNamed) {
  EXPECT_EQ(error_of("data-dir = ~/mnist\n"),
            "x.job:1: data-dir: \"~/mnist\" is not a path: ~ is not expanded here; write an absolute path, such "
            "as /home/NAME/mnist");
  EXPECT_NE(error_of("data-dir = $HOME/mnist\n").find("variables are not expanded"), std::string::npos);
  EXPECT_NE(error_of("compute = replay\nreplay-gradients = ~/g.f32\n").find("~ is not expanded"), std::string::npos);
}

// Each state of a run has its job in JSON, which is UTF-8: such a run could save nothing.
TEST(Job, TextIsUtf8) {
  EXPECT_EQ(error_of("data-dir = /srv/\xc3\xa9t\xc3\xa9\n"), "");
  for (const std::string odd : {"/srv/\xe9", "/srv/\xc3", "/srv/\xed\xa0\x80", "/srv/\xc0\xaf"})
    EXPECT_NE(error_of("data-dir = " + odd + "\n").find("is not UTF-8; write it so, or rename"), std::string::npos)
        << odd;
}

TEST(Job, AFileMayBeginWithAByteOrderMark) {
  EXPECT_EQ(error_of("\xef\xbb\xbfsteps = 5\r\nseed = 2\r\n"), "");
  EXPECT_EQ(error_of(std::string("\xff\xfes\0t\0", 6)), "x.job is UTF-16 text; save it as UTF-8");
}

TEST(Job, ANetworkOfOnesOwnIsNotPossibleYet) {
  for (const std::string file : {"net.onnx", "model.pt", "nets/mine"}) {
    const std::string message = error_of("model = " + file + "\n");
    EXPECT_EQ(message.find("x.job:1: model: \"" + file + "\" is not a model's name: networks of your own are not "), 0u)
        << message;
    EXPECT_NE(message.find("tgctl models"), std::string::npos) << message;
  }
}

TEST(Job, BadValuesNameKeyValueAndRange) {
  EXPECT_EQ(error_of("steps = many\n"), "x.job:1: steps: \"many\" is not a whole number from 1 to 4294967294");
  EXPECT_EQ(error_of("learning-rate = 0,1\n"),
            "x.job:1: learning-rate: \"0,1\" is not a number above 0 to 1e+06; decimals are written with a point");
  EXPECT_EQ(error_of("exchange = shared\n"), "x.job:1: exchange: \"shared\" is not one of auto | direct | sharded");
  for (const char* line : {"steps = 0",
                           "steps = -1",
                           "steps = 1.5",
                           "steps = 99999999999",
                           "steps =",
                           "steps = 5 5",
                           "global-batch = 0",
                           "learning-rate = 0",
                           "learning-rate = nan",
                           "learning-rate = inf",
                           "learning-rate = 0.1x",
                           "momentum = 1",
                           "ema = -0.1",
                           "clip-sigma = -1",
                           "start-timeout = 30",
                           "start-timeout = 1ms",
                           "members = node-a",
                           "schedule-power = 0.7",
                           "link-mbps = -1",
                           "coding = rans",
                           "trace = yes",
                           "compute = think",
                           "replay-zeros = 0.5",
                           "replay-zeros = 1",
                           "digest-every = 0",
                           "threads = 2000",
                           "seed = 18446744073709551616"}) {
    const std::string message = error_of(line);
    EXPECT_TRUE(message.starts_with("x.job:1: ")) << line << ": " << message;
  }
}

TEST(Job, WrongFormNamesTheLine) {
  EXPECT_EQ(error_of("steps = 5\nhello\n"), "x.job:2: \"hello\" is not of the form key = value");
  EXPECT_EQ(error_of("[run]\nsteps = 5\n"), "x.job:1: \"[run]\" is not of the form key = value");
  EXPECT_EQ(error_of("= 5\n"), "x.job:1: \"= 5\" is not of the form key = value");
  EXPECT_EQ(error_of("steps = 5\nseed = 2\nsteps = 6\n"), "x.job:3: steps is set again; line 1 has set it");
  EXPECT_NE(error_of(std::string(kMaxSpecBytes + 1, '#')), "");
}

TEST(Job, SettingsGoOnTop) {
  JobSpec job;
  EXPECT_TRUE(set_job_key(job, "steps=7").ok());
  EXPECT_TRUE(set_job_key(job, "data-dir = /a=b").ok());
  EXPECT_EQ(job.steps, 7u);
  EXPECT_EQ(job.data_dir, "/a=b");
  const Status unknown = set_job_key(job, "stepz=7");
  EXPECT_EQ(unknown.error().message, "unknown key \"stepz\"; did you mean \"steps\"? tgctl help job explains all keys");
  EXPECT_EQ(unknown.error().kind, ErrorKind::kUsage);
  EXPECT_FALSE(set_job_key(job, "steps").ok());
  EXPECT_FALSE(set_job_key(job, "steps=x").ok());
  EXPECT_EQ(job.steps, 7u);
}

TEST(Job, KeysThatDependOnEachOther) {
  EXPECT_TRUE(validate_job({}, 0).ok());
  EXPECT_TRUE(validate_job({}, 64).ok());
  const auto invalid = [](JobSpec job, std::size_t members) {
    const Status status = validate_job(job, members);
    return status.ok() ? std::string() : status.error().message;
  };
  JobSpec stairs;
  stairs.schedule = ScheduleKind::kStaircase;
  EXPECT_NE(invalid(stairs, 0).find("schedule-every"), std::string::npos);
  stairs.schedule_every = 10;
  EXPECT_EQ(invalid(stairs, 0), "");
  JobSpec rising;
  rising.schedule_floor = 0.5;
  EXPECT_NE(invalid(rising, 0).find("schedule-floor = 0.5 is above learning-rate = 0.01"), std::string::npos);
  JobSpec small;
  small.global_batch = 3;
  EXPECT_EQ(invalid(small, 3), "");
  EXPECT_NE(invalid(small, 4).find("global-batch = 3 is less than the 4 members"), std::string::npos);
  EXPECT_EQ(validate_job(small, 4).error().kind, ErrorKind::kInvalidJob);
  small.batch_per_node = 2;
  EXPECT_EQ(invalid(small, 4), "");
  EXPECT_EQ(resolved_global_batch(small, 4), 8u);
  small.global_batch = 0;
  small.batch_per_node = 0;
  EXPECT_NE(invalid(small, 0), "");
  JobSpec many;
  many.global_batch = 1000;
  EXPECT_NE(invalid(many, kMaxMembers + 1), "");
  JobSpec sized;
  sized.data = DatasetKind::kMnist;
  sized.data_train = 100;
  EXPECT_NE(invalid(sized, 0), "");
}

// What validate_job has to say about a job with these settings.
std::string message_of(std::initializer_list<const char*> settings) {
  JobSpec job;
  for (const char* setting : settings) EXPECT_TRUE(set_job_key(job, setting).ok()) << setting;
  const Status status = validate_job(job, 2);
  return status.ok() ? std::string() : status.error().message;
}

TEST(Job, KeysThatOnlySomeDataKnow) {
  EXPECT_EQ(message_of({"data=fractals", "data-classes=5", "image-size=32", "data-train=9"}), "");
  EXPECT_EQ(message_of({"data=folder", "image-size=32", "test-share=0.1", "damaged=skip"}), "");
  EXPECT_EQ(message_of({"data=npy", "test-share=0.1", "normalization=given", "mean=1", "deviation=2"}), "");
  EXPECT_EQ(
      message_of({"data=mnist", "data-dir=mnist"}),
      "data-dir = mnist is relative, and each node would look from where its tgd was started; write it from / on, "
      "such as /srv/mnist");
  EXPECT_EQ(message_of({"data-classes=5"}), "data-classes sizes fractals; data is synthetic");
  EXPECT_EQ(message_of({"data=mnist", "image-size=32"}), "image-size is for fractals and folder; data is mnist");
  EXPECT_EQ(message_of({"data=cifar10", "test-share=0.1"}), "test-share is for folder, npy and idx; data is cifar10");
  EXPECT_EQ(message_of({"data=idx", "damaged=skip"}), "damaged is for folder; data is idx");
  EXPECT_EQ(message_of({"data=folder", "data-train=5"}),
            "data-train and data-test size the synthetic set and fractals; data is folder");
  EXPECT_NE(message_of({"normalization=given", "mean=1"}).find("needs mean and deviation"), std::string::npos);
  EXPECT_EQ(message_of({"mean=1"}), "mean and deviation need normalization = given");
  EXPECT_EQ(message_of({"crop=area", "crop-padding=4"}), "crop-padding is for crop = window; crop is area");
}

TEST(Job, MeanAndDeviationAreListsOfNumbers) {
  JobSpec job;
  EXPECT_TRUE(set_job_key(job, "mean=0.485, 0.456,0.406").ok());
  EXPECT_EQ(job.mean, (std::vector<double>{0.485, 0.456, 0.406}));
  EXPECT_TRUE(set_job_key(job, "mean=").ok());
  EXPECT_TRUE(job.mean.empty());
  for (const char* bad : {"mean=1,", "mean=,", "mean=x", "deviation=0", "deviation=1,-1", "mean=nan", "mean=1 2"})
    EXPECT_FALSE(set_job_key(job, bad).ok()) << bad;
  EXPECT_FALSE(set_job_key(job, "mean=1" + std::string(200, ',')).ok());
}

TEST(Job, HiddenLayersAreOfAnMlp) {
  JobSpec job;
  EXPECT_TRUE(set_job_key(job, "hidden=512, 64,9").ok());
  EXPECT_EQ(job.hidden, (std::vector<std::uint64_t>{512, 64, 9}));
  EXPECT_TRUE(set_job_key(job, "hidden=").ok());
  EXPECT_TRUE(job.hidden.empty());
  for (const char* bad : {"hidden=0", "hidden=1,", "hidden=9.5", "hidden=99999", "label-smoothing=1"})
    EXPECT_FALSE(set_job_key(job, bad).ok()) << bad;
  EXPECT_EQ(message_of({"model=mlp", "hidden="}), "");
  EXPECT_EQ(message_of({"hidden=64"}), "hidden is for model = mlp; model is lenet");
}

TEST(Job, DropoutIsANumberALayer) {
  JobSpec job;
  EXPECT_TRUE(set_job_key(job, "dropout=0.5, 0").ok());
  EXPECT_EQ(job.dropout, (std::vector<double>{0.5, 0}));
  EXPECT_TRUE(set_job_key(job, "dropout=").ok());
  EXPECT_EQ(job, JobSpec());
  for (const char* bad : {"dropout=1", "dropout=-0.1", "dropout=0.5,", "dropout=none", "dropout=nan"})
    EXPECT_FALSE(set_job_key(job, bad).ok()) << bad;
  EXPECT_FALSE(set_job_key(job, "dropout=0.5" + std::string(32, ',')).ok());
  EXPECT_NE(message_of({"compute=replay", "dropout=0.5"}).find("dropout needs compute = train"), std::string::npos);
}

TEST(Job, ClassWeightsAreAWordOrAList) {
  JobSpec job;
  EXPECT_TRUE(set_job_key(job, "class-weights=1, 2,0.5").ok());
  EXPECT_EQ(job.class_weights, (std::vector<double>{1, 2, 0.5}));
  EXPECT_TRUE(set_job_key(job, "class-weights=balanced").ok());
  EXPECT_TRUE(job.class_weights.empty() && job.balanced_classes);
  const Result<JobSpec> read = parse_job(canonical_job(job), "canonical");
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_TRUE(read->class_weights.empty() && read->balanced_classes);
  EXPECT_TRUE(set_job_key(job, "class-weights=3").ok());
  EXPECT_FALSE(job.balanced_classes);
  EXPECT_TRUE(set_job_key(job, "class-weights=none").ok());
  EXPECT_EQ(job, JobSpec());
  for (const char* bad : {"class-weights=0,1", "class-weights=-1", "class-weights=nan", "class-weights=1e7",
                          "class-weights=1,", "class-weights=equal", "class-weights=balanced,1"})
    EXPECT_FALSE(set_job_key(job, bad).ok()) << bad;
  EXPECT_FALSE(set_job_key(job, "class-weights=1" + std::string(2000, ',')).ok());
  EXPECT_NE(message_of({"compute=replay", "class-weights=balanced"}).find("class-weights needs compute = train"),
            std::string::npos);
}

TEST(Job, TheLastLayersFormatIsThePapers) {
  for (const ModelKind model : values_of<ModelKind>()) {
    const std::string name = to_word(model);
    const bool floats = name.starts_with("alexnet") || name.starts_with("googlenet");
    JobSpec job;
    job.model = model;
    const GradientFormat format = floats ? GradientFormat::kFloat32 : GradientFormat::kTernary;
    EXPECT_EQ(resolved_last_layer(job), format) << name;
    EXPECT_NE(canonical_job(job).find(std::string("\nlast-layer = ") + to_word(format) + "\n"), std::string::npos)
        << name;
    EXPECT_EQ(changed_keys(job, kMaxSettingsBytes).find("last-layer"), std::string::npos) << name;
    const std::uint64_t hash = job_hash(job);
    const Result<JobSpec> read = parse_job(canonical_job(job), "canonical");
    ASSERT_TRUE(read.ok()) << read.error().message;
    EXPECT_EQ(changed_keys(*read, kMaxSettingsBytes), changed_keys(job, kMaxSettingsBytes)) << name;
    job.last_layer = format;
    EXPECT_EQ(job_hash(job), hash) << name << ": said or not, it is the same job";
    job.last_layer = floats ? GradientFormat::kTernary : GradientFormat::kFloat32;
    EXPECT_EQ(resolved_last_layer(job), *job.last_layer) << name;
    EXPECT_NE(changed_keys(job, kMaxSettingsBytes).find("last-layer"), std::string::npos) << name;
    EXPECT_NE(job_hash(job), hash) << name;
  }
}

TEST(Job, AStatusHasTheLastLayersFormat) {
  const auto shown = [](const JobSpec& job) {
    RunStatus status;
    show_job(job, status);
    return status.gradients + " " + status.last_layer;
  };
  EXPECT_EQ(shown({}), "ternary ternary");
  JobSpec job;
  job.model = ModelKind::kAlexnet;
  EXPECT_EQ(shown(job), "ternary float32");
  job.gradients = GradientFormat::kFloat16;
  EXPECT_EQ(shown(job), "float16 float16") << "last-layer is for ternary gradients";
}

TEST(Job, TheBestModelIsThatOfAnEvaluation) {
  EXPECT_EQ(message_of({"keep=best", "evaluate-every=10"}), "");
  EXPECT_EQ(message_of({"keep=best"}), "keep = best needs evaluate-every, the steps between evaluations");
}

TEST(Job, AdamWDecaysAtTheUpdate) {
  EXPECT_EQ(message_of({"optimizer=adamw", "weight-decay=0.1"}), "");
  EXPECT_EQ(message_of({"optimizer=adamw", "weight-decay=0.1", "weight-decay-path=outside"}), "");
  EXPECT_EQ(message_of({"optimizer=adamw", "weight-decay=0.1", "compute=replay"}), "");
  EXPECT_NE(message_of({"optimizer=adamw", "weight-decay-path=inside"}).find("never enters the gradient"),
            std::string::npos);
  JobSpec job;
  EXPECT_TRUE(decays_inside(job));
  job.optimizer = OptimizerKind::kAdamW;
  EXPECT_FALSE(decays_inside(job));
}

TEST(Job, FrozenNamesAreAList) {
  JobSpec job;
  EXPECT_TRUE(set_job_key(job, "freeze=conv1., layer1").ok());
  EXPECT_EQ(job.freeze, (std::vector<std::string>{"conv1.", "layer1"}));
  EXPECT_TRUE(set_job_key(job, "freeze=").ok());
  EXPECT_TRUE(job.freeze.empty());
  for (const char* bad : {"freeze=,", "freeze=a,", "freeze=a,,b", "freeze=a ,b"})
    EXPECT_FALSE(set_job_key(job, bad).ok()) << bad;
}

TEST(Job, ReplayHasNothingToTrainOrEvaluate) {
  const auto message = message_of;
  EXPECT_EQ(message({"compute=replay", "model=vgg-a", "replay-zeros=0.99", "weight-decay=0"}), "");
  EXPECT_EQ(message({"compute=replay", "weight-decay=0.1", "weight-decay-path=outside"}), "");
  EXPECT_NE(message({"compute=replay", "weight-decay=0.1"}).find("set weight-decay-path to outside"),
            std::string::npos);
  EXPECT_NE(message({"compute=replay", "evaluate-every=5"}).find("evaluate-every = 5 needs compute = train"),
            std::string::npos);
  EXPECT_NE(message({"compute=replay", "replay-gradients="}).find("replay-gradients is empty"), std::string::npos);
  EXPECT_NE(message({"replay-zeros=0.9"}).find("replay-zeros = 0.9 needs compute = replay"), std::string::npos);
  EXPECT_NE(message({"replay-gradients=/x"}).find("replay-gradients = /x needs compute = replay"), std::string::npos);
}

TEST(Job, CanonicalTextReadsBackAsTheSameJob) {
  JobSpec job;
  job.model = ModelKind::kCifarnet;
  job.data_dir = "/some where/data";
  job.learning_rate = 0.1 + 0.2;  // 0.30000000000000004: needs all its digits
  job.epsilon = 1e-300;
  job.start_timeout_ms = 1234;
  job.seed = UINT64_MAX;
  job.clip_sigma = 0;
  for (const JobSpec& spec : {JobSpec(), job}) {
    const std::string text = canonical_job(spec);
    EXPECT_LE(text.size(), kMaxSpecBytes);
    const Result<JobSpec> parsed = parse_job(text, "canonical");
    ASSERT_TRUE(parsed.ok()) << parsed.error().message;
    JobSpec resolved = spec;
    resolved.last_layer = resolved_last_layer(spec);
    EXPECT_EQ(*parsed, resolved);
    EXPECT_EQ(canonical_job(*parsed), text);
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), static_cast<std::ptrdiff_t>(job_options().size()));
  }
  EXPECT_NE(job_hash(job), job_hash(JobSpec()));
}

// Nodes compare jobs by their hash, and runs on disk keep the text: neither may change with the code.
TEST(Job, CanonicalTextAndHashAreFrozen) {
  EXPECT_EQ(canonical_job({}),
            "auto-resume = true\n"
            "batch-per-node = 0\n"
            "beta1 = 0.9\n"
            "beta2 = 0.999\n"
            "bucket-parameters = 0\n"
            "checkpoint-every = 5m\n"
            "chunk-parameters = 0\n"
            "class-weights = none\n"
            "clip-sigma = 2.5\n"
            "coding = auto\n"
            "colour = auto\n"
            "colour-hue = 0\n"
            "colour-strength = 0.4\n"
            "compute = train\n"
            "crop = auto\n"
            "crop-padding = 0\n"
            "damaged = fatal\n"
            "data = synthetic\n"
            "data-classes = 0\n"
            "data-dir =\n"
            "data-seed = 1\n"
            "data-test = 0\n"
            "data-train = 0\n"
            "deviation =\n"
            "digest-every = 20\n"
            "dropout =\n"
            "ema = 0.9999\n"
            "epochs = 0\n"
            "epsilon = 1e-08\n"
            "evaluate-every = 0\n"
            "exchange = auto\n"
            "flip = auto\n"
            "float-steps = 0\n"
            "freeze =\n"
            "global-batch = 64\n"
            "gradients = ternary\n"
            "hidden = 256,128\n"
            "image-size = 0\n"
            "initial =\n"
            "join-limit = 1m\n"
            "keep = last\n"
            "label-smoothing = 0\n"
            "last-layer = ternary\n"
            "learning-rate = 0.01\n"
            "least-area = 0.08\n"
            "link-mbps = 0\n"
            "mean =\n"
            "members = all\n"
            "micro-batch = 0\n"
            "min-ternary-size = 1\n"
            "model = lenet\n"
            "momentum = 0.9\n"
            "normalization = auto\n"
            "optimizer = momentum\n"
            "patience = 0\n"
            "replay-gradients = gaussian\n"
            "replay-zeros = 0.68\n"
            "resize = 0\n"
            "resize-shape = aspect\n"
            "scaler = paper\n"
            "scaler-sharing = max\n"
            "schedule = constant\n"
            "schedule-every = 0\n"
            "schedule-factor = 0.1\n"
            "schedule-floor = 0\n"
            "schedule-power = 0.5\n"
            "seed = 1\n"
            "split = weight\n"
            "start-timeout = 30s\n"
            "step-timeout = 1m\n"
            "steps = 1000\n"
            "target-accuracy = 0\n"
            "test-share = 0\n"
            "threads = 0\n"
            "trace = false\n"
            "warm-up = 0\n"
            "weight-decay = 0\n"
            "weight-decay-path = auto\n");
  EXPECT_EQ(job_hash({}), 0xde548d633099f186u);
  JobSpec other;
  for (const char* setting :
       {"model=vgg-a", "data=cifar10", "compute=replay", "replay-gradients=/data/{rank}.f32", "optimizer=adam",
        "schedule=staircase", "schedule-every=7", "weight-decay-path=outside", "gradients=float16", "scaler=repo",
        "scaler-sharing=none", "last-layer=float32", "exchange=sharded", "coding=entropy", "split=speed"})
    ASSERT_TRUE(set_job_key(other, setting).ok()) << setting;
  EXPECT_EQ(job_hash(other), 0x4530f369349ec278u);
}

// Whatever the help allows is read, and written as it was read.
TEST(Job, EveryWordOfEveryChoiceReadsBack) {
  std::size_t choices = 0;
  for (const Option<JobSpec>& option : job_options()) {
    std::istringstream words(option.allowed);
    std::size_t read = 0;
    for (std::string word; words >> word;) {
      if (word == "|") continue;
      JobSpec job;
      ASSERT_TRUE(option.set(job, word).ok()) << option.name << " = " << word;
      EXPECT_EQ(option.get(job), word) << option.name;
      ++read;
    }
    choices += read > 0 ? 1 : 0;
  }
  EXPECT_EQ(choices, 24u) << "twenty-one enums, schedule-power, auto-resume and trace";
}

// A key whose row set another field would pass every other test.
TEST(Job, EveryKeyIsInTheCanonicalText) {
  const std::string defaults = canonical_job({});
  const std::pair<const char*, const char*> other[] = {{"model", "cifarnet"},
                                                       {"hidden", "64,9"},
                                                       {"label-smoothing", "0.1"},
                                                       {"class-weights", "1,2.5,0.001"},
                                                       {"dropout", "0.5,0"},
                                                       {"data", "mnist"},
                                                       {"data-dir", "/x"},
                                                       {"data-seed", "7"},
                                                       {"data-train", "7"},
                                                       {"data-test", "7"},
                                                       {"data-classes", "7"},
                                                       {"image-size", "7"},
                                                       {"test-share", "0.25"},
                                                       {"damaged", "skip"},
                                                       {"crop", "window"},
                                                       {"crop-padding", "7"},
                                                       {"resize", "7"},
                                                       {"resize-shape", "square"},
                                                       {"least-area", "0.05"},
                                                       {"flip", "horizontal"},
                                                       {"colour", "jitter"},
                                                       {"colour-strength", "0.7"},
                                                       {"colour-hue", "0.2"},
                                                       {"normalization", "given"},
                                                       {"mean", "0.5,-0.25,1e-09"},
                                                       {"deviation", "0.5"},
                                                       {"initial", "/x/model.safetensors"},
                                                       {"freeze", "conv1.,bn"},
                                                       {"steps", "7"},
                                                       {"seed", "7"},
                                                       {"global-batch", "7"},
                                                       {"batch-per-node", "7"},
                                                       {"micro-batch", "7"},
                                                       {"compute", "replay"},
                                                       {"replay-gradients", "/x/{rank}.f32"},
                                                       {"replay-zeros", "0.92"},
                                                       {"optimizer", "adam"},
                                                       {"learning-rate", "0.5"},
                                                       {"schedule", "polynomial"},
                                                       {"schedule-factor", "0.5"},
                                                       {"schedule-every", "7"},
                                                       {"schedule-power", "2"},
                                                       {"schedule-floor", "0.001"},
                                                       {"warm-up", "7"},
                                                       {"momentum", "0.5"},
                                                       {"beta1", "0.5"},
                                                       {"beta2", "0.5"},
                                                       {"epsilon", "0.5"},
                                                       {"weight-decay", "0.5"},
                                                       {"weight-decay-path", "outside"},
                                                       {"ema", "0.5"},
                                                       {"evaluate-every", "7"},
                                                       {"gradients", "float32"},
                                                       {"clip-sigma", "0.5"},
                                                       {"scaler", "repo"},
                                                       {"scaler-sharing", "none"},
                                                       {"last-layer", "float32"},
                                                       {"min-ternary-size", "7"},
                                                       {"float-steps", "7"},
                                                       {"exchange", "direct"},
                                                       {"coding", "raw"},
                                                       {"trace", "true"},
                                                       {"bucket-parameters", "7"},
                                                       {"chunk-parameters", "7"},
                                                       {"epochs", "7"},
                                                       {"target-accuracy", "0.98"},
                                                       {"patience", "7"},
                                                       {"keep", "best"},
                                                       {"digest-every", "7"},
                                                       {"split", "speed"},
                                                       {"threads", "7"},
                                                       {"start-timeout", "7s"},
                                                       {"step-timeout", "7s"},
                                                       {"checkpoint-every", "7s"},
                                                       {"auto-resume", "true"},
                                                       {"join-limit", "7s"},
                                                       {"link-mbps", "7"}};
  for (const auto& [key, value] : other) {
    JobSpec job;
    const Status status = set_job_key(job, std::string(key) + "=" + value);
    ASSERT_TRUE(status.ok()) << key << ": " << status.error().message;
    const std::string text = canonical_job(job);
    const std::string line = std::string("\n") + key + " = " + value + "\n";
    EXPECT_NE(("\n" + text).find(line), std::string::npos) << key;
    // Nothing but this line differs.
    std::string without = text;
    const std::size_t at = ("\n" + text).find(line);
    without.erase(at, line.size() - 1);
    std::string default_line = std::string("\n") + key + " =";
    const std::size_t default_at = ("\n" + defaults).find(default_line);
    ASSERT_NE(default_at, std::string::npos) << key;
    std::string rest = defaults;
    rest.erase(default_at, defaults.find('\n', default_at) + 1 - default_at);
    EXPECT_EQ(without, rest) << key;
  }
  constexpr std::size_t kOneChoiceOnly = 1;  // members
  EXPECT_EQ(std::size(other) + kOneChoiceOnly, job_options().size());
}

TEST(Job, EveryOptionIsDocumented) {
  for (const Option<JobSpec>& option : job_options()) {
    EXPECT_GE(option.help.size(), 20u) << option.name;
    EXPECT_EQ(option.help.back(), '.') << option.name;
    JobSpec job;
    EXPECT_TRUE(option.set(job, option.get(JobSpec())).ok()) << option.name << ": its default is not allowed";
  }
}

}  // namespace
}  // namespace tg::schema
