// tgd_gpu_check kernels | networks | contract | bandwidth | rates | trace | about, with a module or on the stand-in:
//
//   tgd_gpu_check kernels --module tgd-cuda.so
//   tgd_gpu_check networks --stand-in --small --fault gradient --only networks.small
//   tgd_gpu_check rates --module tgd-cuda.so --model lenet --batch 64 --math fp32 --math tf32
//
// report.h says what it prints. Exit status: 0 all passed, 1 not so, 2 wrong words or no device, 3 none failed and one
// was not run or not judged, 4 the device was lost, and what follows was not begun.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <thread>

#include "tests/gpu/checks.h"
#include "tests/gpu/rates.h"
#include "tests/gpu/subject.h"

namespace {

using namespace tg;

struct Options {
  std::string part, cupti;
  bool stand_in = false;
  gpu::SubjectOptions subject;
  gpu::ReportOptions report;
  gpu::CheckOptions checks;
  gpu::RateOptions rates;
};

[[noreturn]] void fail(const std::string& why) {
  std::fprintf(stderr, "tgd_gpu_check: %s\n", why.c_str());
  std::exit(2);
}

engine::Math math_of(const std::string& word) {
  const std::optional<engine::Math> math = from_word<engine::Math>(word);
  if (!math) fail("unknown math " + word);
  return *math;
}

Options parse(int count, char** words) {
  if (count < 2) fail("kernels, networks, contract, bandwidth, rates, trace or about?");
  Options options;
  options.part = words[1];
  options.checks.threads = static_cast<int>(std::max(std::thread::hardware_concurrency(), 1U));
  for (int i = 2; i < count; ++i) {
    const std::string word = words[i];
    if (word == "--stand-in") {
      options.stand_in = options.checks.stand_in = true;
    } else if (word == "--small") {
      options.checks.small = true;
    } else if (word == "--list") {
      options.report.list = true;
    } else if (i + 1 == count) {
      fail("no value after " + word);
    } else {
      const std::string value = words[++i];
      if (word == "--module") {
        options.subject.module = value;
      } else if (word == "--fault") {
        options.subject.fault = value;
      } else if (word == "--device") {
        options.subject.device = std::atoi(value.c_str());
      } else if (word == "--math") {
        options.subject.math = options.checks.math = math_of(value);
        options.rates.maths.push_back(options.subject.math);
      } else if (word == "--only") {
        options.report.only.push_back(value);
      } else if (word == "--skip") {
        options.report.skip.push_back(value);
      } else if (word == "--seconds") {
        options.report.seconds = options.rates.seconds = std::strtod(value.c_str(), nullptr);
      } else if (word == "--cupti") {
        options.cupti = value;
      } else if (word == "--model") {
        const std::optional<ModelKind> model = from_word<ModelKind>(value);
        if (!model) fail("unknown model " + value);
        options.rates.model = *model;
      } else if (word == "--batch") {
        options.rates.batch = std::atoi(value.c_str());
      } else {
        fail("unknown option " + word);
      }
    }
  }
  if (options.rates.maths.empty()) options.rates.maths = {options.subject.math};
  if (options.stand_in != options.subject.module.empty()) fail("either --module or --stand-in is needed");
  return options;
}

// The exit status.
int run(const Options& options) {
  std::string untraced;
  std::unique_ptr<gpu::KernelTimer> timer;  // made before the device is used
  if (options.part == "bandwidth" || options.part == "trace") timer = gpu::make_kernel_timer(options.cupti, untraced);
  if (options.part == "rates") {
    gpu::print_rates(options.subject, options.rates);
    return 0;
  }
  if (options.part == "trace") {
    if (!timer->traces()) fail(untraced);
    gpu::print_trace(options.subject, options.rates, *timer);
    return 0;
  }
  engine::Accelerator& subject = gpu::open_subject(options.subject);
  gpu::Report report(options.report);
  if (options.part == "about") {
    std::printf("%s; %s; %llu MiB\n", std::string(subject.device()).c_str(), std::string(subject.library()).c_str(),
                static_cast<unsigned long long>(subject.memory().total >> 20));
    return 0;
  }
  if (options.part == "kernels") {
    gpu::check_kernels(report, subject, options.checks);
  } else if (options.part == "networks") {
    gpu::check_networks(report, subject, options.checks);
  } else if (options.part == "contract") {
    gpu::check_contract(report, subject, options.checks);
  } else if (options.part == "bandwidth") {
    gpu::check_bandwidth(report, subject, *timer, untraced);
  } else {
    fail("there is no part " + options.part);
  }
  return report.status();
}

}  // namespace

int main(int count, char** words) {
  const Options options = parse(count, words);
  try {
    return run(options);
  } catch (const std::exception& error) {
    fail(error.what());
  }
}
