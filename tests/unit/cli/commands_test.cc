// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "absl/time/clock.h"
#include "fake_router.h"
#include "tests/temp_folder.h"
#include "tests/tiny_models.h"

namespace baton::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

class CommandsTest : public ::testing::Test {
 protected:
  CliResult Generate(std::vector<std::string> arguments) {
    const bool has_target = std::find(arguments.begin(), arguments.end(), "--target") != arguments.end();
    if (!has_target) arguments.insert(arguments.begin(), {"--target", router_.target()});
    arguments.insert(arguments.begin(), "generate");
    return RunCli(arguments);
  }
  // The request that the command sent.
  v1::GenerateRequest Sent(const std::vector<std::string>& arguments) {
    const CliResult run = Generate(arguments);
    EXPECT_EQ(run.code, 0) << run.err;
    const auto requests = router_.requests();
    return requests.empty() ? v1::GenerateRequest() : requests.back();
  }

  FakeRouter router_;
};

TEST_F(CommandsTest, GenerateWritesTheTextAndEndsItsLine) {
  const CliResult run = Generate({"--prompt", "hi"});
  EXPECT_EQ(run.code, 0);
  EXPECT_EQ(run.out, "Hello world!\n");
  EXPECT_THAT(run.err, IsEmpty());
  EXPECT_EQ(router_.requests().at(0).prompt(), "hi");
}

TEST_F(CommandsTest, GenerateWithJsonWritesOneLinePerMessage) {
  const CliResult run = Generate({"--prompt", "hi", "--json"});

  ASSERT_EQ(run.code, 0);
  const std::vector<std::string> lines = Lines(run.out);
  ASSERT_EQ(lines.size(), 4);
  EXPECT_EQ(nlohmann::json::parse(lines[0])["chunk"]["output_index"], 0);
  EXPECT_EQ(nlohmann::json::parse(lines[1])["chunk"]["token_ids"], nlohmann::json({2, 3}));
  EXPECT_EQ(nlohmann::json::parse(lines[3])["finish"]["reason"], "FINISH_REASON_LENGTH");
}

TEST_F(CommandsTest, GenerateSummaryIsOneLineOnStderr) {
  const CliResult run = Generate({"--prompt", "hi", "--summary"});
  EXPECT_THAT(Lines(run.err), ElementsAre("TTFT 12.3 ms, TPOT 2.0 ms, 5 prompt + 4 output tokens, 3.0 MiB of KV handed "
                                          "over by ucx:shm, prefill-0 -> decode-0"));
}

TEST_F(CommandsTest, SamplingFlagsReachTheRequest) {
  const v1::GenerateRequest request = Sent({"--prompt",
                                            "x",
                                            "--model",
                                            "m",
                                            "--label",
                                            "l",
                                            "--ttft-slo",
                                            "500ms",
                                            "--tpot-slo",
                                            "40ms",
                                            "--tenant",
                                            "t",
                                            "--priority",
                                            "batch",
                                            "--when-late",
                                            "serve",
                                            "--temperature",
                                            "0.5",
                                            "--top-k",
                                            "40",
                                            "--top-p",
                                            "0.9",
                                            "--min-p",
                                            "0.1",
                                            "--repetition-penalty",
                                            "1.1",
                                            "--presence-penalty",
                                            "-1.5",
                                            "--frequency-penalty",
                                            "0.25",
                                            "--logit-bias",
                                            "5=-2.5,7=100",
                                            "--logit-bias",
                                            "9=1",
                                            "--seed",
                                            "18446744073709551615",
                                            "--max-tokens",
                                            "48",
                                            "--min-tokens",
                                            "3",
                                            "--stop",
                                            "a,b",
                                            "--stop",
                                            "[c]",
                                            "--stop-token-ids",
                                            "1,2",
                                            "--ignore-eos",
                                            "--no-skip-special-tokens",
                                            "--logprobs",
                                            "2"});
  EXPECT_DOUBLE_EQ(request.ttft_slo_seconds(), 0.5);
  EXPECT_DOUBLE_EQ(request.tpot_slo_seconds(), 0.04);
  EXPECT_EQ(request.tenant(), "t");
  EXPECT_EQ(request.priority(), v1::PRIORITY_BATCH);
  EXPECT_EQ(request.when_late(), v1::WHEN_LATE_SERVE);
  EXPECT_EQ(request.model(), "m");
  EXPECT_EQ(request.request_label(), "l");
  const v1::SamplingParams& sampling = request.sampling();
  EXPECT_EQ(sampling.temperature(), 0.5f);
  EXPECT_EQ(sampling.top_k(), 40);
  EXPECT_EQ(sampling.top_p(), 0.9f);
  EXPECT_EQ(sampling.min_p(), 0.1f);
  EXPECT_EQ(sampling.repetition_penalty(), 1.1f);
  EXPECT_EQ(sampling.presence_penalty(), -1.5f);
  EXPECT_EQ(sampling.frequency_penalty(), 0.25f);
  EXPECT_EQ(sampling.logit_bias().at(5), -2.5f);
  EXPECT_EQ(sampling.logit_bias().at(7), 100);
  EXPECT_EQ(sampling.logit_bias().at(9), 1);
  EXPECT_EQ(sampling.seed(), 18446744073709551615u);
  EXPECT_EQ(sampling.max_tokens(), 48u);
  EXPECT_EQ(sampling.min_tokens(), 3u);
  EXPECT_THAT(sampling.stop(), ElementsAre("a,b", "[c]"));
  EXPECT_THAT(sampling.stop_token_ids(), ElementsAre(1, 2));
  EXPECT_TRUE(sampling.ignore_eos());
  EXPECT_TRUE(sampling.has_skip_special_tokens());
  EXPECT_FALSE(sampling.skip_special_tokens());
  EXPECT_EQ(sampling.logprobs(), 2u);
}

TEST_F(CommandsTest, FlagsNotGivenStayUnset) {
  const v1::GenerateRequest request = Sent({"--token-ids", "3,1,2"});
  EXPECT_THAT(request.token_ids().ids(), ElementsAre(3, 1, 2));
  EXPECT_EQ(request.sampling().ByteSizeLong(), 0u);
}

TEST_F(CommandsTest, AnEmptyPromptIsNotTheNextFlag) {
  EXPECT_EQ(Generate({"--prompt=", "--json"}).out.substr(0, 1), "{");
  EXPECT_EQ(router_.requests().at(0).prompt(), "");
}

TEST_F(CommandsTest, ChatInputPutsTheSystemMessageFirst) {
  const v1::GenerateRequest request = Sent({"--chat", "hello", "--system", "be brief"});
  ASSERT_EQ(request.chat().messages_size(), 2);
  EXPECT_EQ(request.chat().messages(0).role(), "system");
  EXPECT_EQ(request.chat().messages(1).role(), "user");
  EXPECT_EQ(request.chat().messages(1).content(), "hello");
}

TEST_F(CommandsTest, APromptOfADashIsTheWholeInput) {
  std::string text = "two\nlines ";
  text.append(100'000, 'x');
  CliResult run = RunCli({"generate", "--target", router_.target(), "--prompt", "-"}, text);
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(router_.requests().at(0).prompt(), text);
  run = RunCli({"generate", "--target", router_.target(), "--chat=-", "--system", "s"}, "a\nb\n");
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(router_.requests().at(1).chat().messages(1).content(), "a\nb\n");
}

TEST_F(CommandsTest, APromptOfADashWithoutInputIsAnError) {
  for (const std::string flag : {"--prompt", "--chat"}) {
    const CliResult run = RunCli({"generate", "--target", router_.target(), flag, "-"}, "");
    EXPECT_EQ(run.code, 1);
    EXPECT_EQ(run.err,
              "baton generate: " + flag + " -: the standard input is empty, expected the text of the prompt there\n");
  }
  EXPECT_THAT(router_.requests(), IsEmpty());
}

TEST_F(CommandsTest, AnInterruptEndsTheWaitForThePrompt) {
  Interrupt interrupt;
  interrupt.Trigger();
  EXPECT_EQ(RunCli({"generate", "--prompt", "-"}, "x", &interrupt).code, 130);
}

TEST_F(CommandsTest, AnOutputThatCannotBeWrittenIsTheError) {
  const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  ASSERT_GE(full, 0);
  std::atomic<bool> cancelled = false;
  router_.on_generate = [&cancelled](grpc::ServerContext& context, const auto&, auto& writer) {
    writer.Write(MakeChunk(0, "Hel", {1}));
    while (!context.IsCancelled()) absl::SleepFor(absl::Milliseconds(1));
    cancelled = true;
    return grpc::Status::CANCELLED;
  };
  router_.status.set_ready(true);
  const std::string target = "--target=" + router_.target();
  const std::string model = DemoModel("demo-chat");
  const std::pair<std::vector<std::string>, std::string> cases[] = {
      {{"generate", "--prompt=x", target}, "baton generate"},
      {{"generate", "--prompt=x", "--json", target}, "baton generate"},
      {{"status", target}, "baton status"},
      {{"tokenize", "--model", model, "--token-ids=257"}, "baton tokenize"},
      {{"render", "--model", model, "--chat=x"}, "baton render"},
      {{"models", "inspect", model}, "baton models inspect"},
      {{"generate", "--help"}, "baton"},
      {{"--version"}, "baton"},
  };
  for (const auto& [arguments, program] : cases) {
    const CliResult run = RunCli(arguments, "", nullptr, full);
    EXPECT_EQ(run.code, 1) << program;
    EXPECT_EQ(run.err, program + ": the output cannot be written: No space left on device\n");
  }
  EXPECT_TRUE(cancelled) << "the answer that nobody reads is cancelled";
  close(full);
}

TEST_F(CommandsTest, AConversationFromAFileIsSentWhole) {
  const TempFolder folder;
  std::ofstream(folder.path() / "c.json")
      << R"([{"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": {"b": 1}}}]},)"
         R"( {"role": "tool", "content": "4", "tool_call_id": "1", "name": "f"}])";
  std::ofstream(folder.path() / "t.json") << R"([{"type": "function"}])";
  const v1::GenerateRequest request = Sent(
      {"--messages", folder.path() / "c.json", "--tools", folder.path() / "t.json", "--template-args", R"({"x": 1})"});
  const v1::ChatInput& chat = request.chat();
  ASSERT_EQ(chat.messages_size(), 2);
  EXPECT_FALSE(chat.messages(0).has_content());
  ASSERT_EQ(chat.messages(0).tool_calls_size(), 1);
  EXPECT_EQ(chat.messages(0).tool_calls(0).id(), "1");
  EXPECT_EQ(chat.messages(0).tool_calls(0).name(), "f");
  EXPECT_EQ(chat.messages(0).tool_calls(0).arguments_json(), R"({"b":1})");
  EXPECT_EQ(chat.messages(1).content(), "4");
  EXPECT_EQ(chat.messages(1).tool_call_id(), "1");
  EXPECT_EQ(chat.messages(1).name(), "f");
  ASSERT_EQ(chat.tools_size(), 1);
  EXPECT_EQ(chat.tools(0).definition_json(), R"({"type":"function"})");
  EXPECT_EQ(chat.template_arguments_json(), R"({"x": 1})");
}

TEST_F(CommandsTest, PartsOfAMessageAreSentAsParts) {
  const TempFolder folder;
  std::ofstream(folder.path() / "c.json")
      << R"([{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": ""}]}])";
  const v1::GenerateRequest request = Sent({"--messages", folder.path() / "c.json"});
  ASSERT_EQ(request.chat().messages_size(), 1);
  const v1::ChatMessage& message = request.chat().messages(0);
  EXPECT_FALSE(message.has_content());
  ASSERT_EQ(message.content_parts_size(), 2);
  EXPECT_EQ(message.content_parts(0).type(), "text");
  EXPECT_EQ(message.content_parts(0).text(), "a");
  EXPECT_EQ(message.content_parts(1).text(), "");
}

TEST_F(CommandsTest, UsageErrorsExitWithTwoAndNameTheFlag) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{}, "--prompt,--chat,--messages,--token-ids"},
      {{"--prompt", "a", "--chat", "b"}, "--prompt,--chat,--messages,--token-ids"},
      {{"--prompt", "a", "--system", "b"}, "--chat"},
      {{"--prompt", "a", "--frobnicate"}, "--frobnicate"},
      {{"--prompt", "a", "--max-tokens", "-1"}, "--max-tokens: \"-1\", expected a whole number from 0 to 4294967295"},
      {{"--prompt", "a", "--max-tokens", "0x10"}, "--max-tokens: \"0x10\""},
      {{"--prompt", "a", "--seed", "-1"}, "--seed: \"-1\", expected a whole number from 0 to 18446744073709551615\n"},
      {{"--prompt", "a", "--seed", "1", "--seed", "2"}, "--seed"},
      {{"--prompt", "a", "--temperature", "warm"}, "--temperature: \"warm\", expected a number"},
      {{"--prompt", "a", "--temperature", "nan"}, "--temperature: \"nan\", expected a number"},
      {{"--token-ids", ""}, "--token-ids: \"\", expected token ids from 0 to 2147483647, separated by commas"},
      {{"--token-ids="}, "--token-ids: \"\", expected token ids"},
      {{"--token-ids", "5,,6"}, "--token-ids: \"5,,6\", expected token ids"},
      {{"--token-ids", "1,a"}, "--token-ids: \"1,a\", expected token ids"},
      {{"--token-ids", "-1"}, "--token-ids: \"-1\", expected token ids"},
      {{"--prompt", "a", "--stop-token-ids", ""}, "--stop-token-ids: \"\", expected token ids"},
      {{"--prompt", "a", "--target", "127.0.0.1:117587"},
       "--target: \"127.0.0.1:117587\", expected HOST:PORT with a port of 1 to 65535"},
      {{"--prompt", "a", "--target", "127.0.0.1:0"}, "--target: \"127.0.0.1:0\", expected HOST:PORT"},
      {{"--prompt", "a", "--target", "localhost"}, "--target: \"localhost\", expected HOST:PORT"},
      {{"--prompt", "a", "--logit-bias", "5"}, "--logit-bias"},
      {{"--prompt", "a", "--timeout", "soon"}, "--timeout"},
      {{"--prompt", "\xFF"}, "--prompt"},
      {{"--prompt", "a", "--tools", "t.json"}, "--tools: expected --chat or --messages beside it"},
      {{"--prompt", "a", "--template-args", "{}"}, "--template-args: expected --chat or --messages beside it"},
  };
  for (const auto& [arguments, word] : cases) {
    const CliResult run = Generate(arguments);
    EXPECT_EQ(run.code, 2) << word;
    EXPECT_THAT(run.err, HasSubstr(word));
  }
  EXPECT_THAT(router_.requests(), IsEmpty());
  EXPECT_EQ(RunCli({}).code, 2);
}

TEST_F(CommandsTest, HelpGoesToStdoutAndSucceeds) {
  const CliResult run = RunCli({"generate", "--help"});
  EXPECT_EQ(run.code, 0);
  EXPECT_THAT(run.out, HasSubstr("--token-ids"));
}

TEST_F(CommandsTest, ARefusalNamesTargetStatusAndCause) {
  router_.on_generate = [](auto&, const auto&, auto&) {
    return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "sampling.top_p is 2, expected (0, 1]");
  };
  const CliResult run = Generate({"--prompt", "x"});
  EXPECT_EQ(run.code, 1);
  EXPECT_THAT(run.err, HasSubstr(router_.target() + " answered INVALID_ARGUMENT: sampling.top_p is 2"));
}

TEST_F(CommandsTest, ARefusalWithoutWordsLeavesNoColon) {
  router_.on_generate = [](auto&, const auto&, auto&) { return grpc::Status(grpc::StatusCode::INTERNAL, ""); };
  EXPECT_EQ(Generate({"--prompt", "x"}).err, "baton generate: " + router_.target() + " answered INTERNAL\n");
}

TEST_F(CommandsTest, AServerWithoutTheServiceIsAskedWhetherItIsARouter) {
  const auto worker = GrpcServer::Start({.listen = "127.0.0.1:0"}, {});
  ASSERT_TRUE(worker.ok());
  const std::string target = "127.0.0.1:" + std::to_string((*worker)->port());
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"generate", "--prompt", "x"}, {"status"}, {"bench", "serve"}}) {
    std::vector<std::string> arguments = command;
    arguments.insert(arguments.end(), {"--target", target});
    const CliResult run = RunCli(arguments);
    EXPECT_EQ(run.code, 1);
    EXPECT_THAT(run.err, HasSubstr(target + " answered UNIMPLEMENTED: expected a baton-router\n"));
  }
}

TEST_F(CommandsTest, AnAnswerThatBreaksOffKeepsItsTextAndFails) {
  router_.on_generate = [](auto&, const auto&, auto& writer) {
    writer.Write(MakeChunk(0, "Hel", {1}));
    return grpc::Status(grpc::StatusCode::UNAVAILABLE, "no worker left");
  };
  const CliResult run = Generate({"--prompt", "x"});
  EXPECT_EQ(run.code, 1);
  EXPECT_EQ(run.out, "Hel\n");
  EXPECT_THAT(run.err, HasSubstr("no worker left"));
}

TEST_F(CommandsTest, ARequestThatADrainingRouterCancelsIsSentAgain) {
  std::atomic<int> calls = 0;
  router_.on_generate = [&](auto& context, const auto& request, auto& writer) {
    return ++calls == 1 ? grpc::Status::CANCELLED : EchoAnswer(context, request, writer);
  };
  const CliResult run = Generate({"--prompt", "x"});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(run.out, "Hello world!\n");
  EXPECT_EQ(calls, 2);
}

TEST_F(CommandsTest, AConnectionThatEndsAfterTheFinishMessageIsNoError) {
  router_.on_generate = [&](auto& context, const auto& request, auto& writer) {
    EXPECT_TRUE(EchoAnswer(context, request, writer).ok());
    return grpc::Status(grpc::StatusCode::UNAVAILABLE, "Broken pipe");
  };
  const CliResult run = Generate({"--prompt", "x"});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(run.out, "Hello world!\n");
}

TEST_F(CommandsTest, AStreamWithoutFinishMessageIsAnError) {
  router_.on_generate = [](auto&, const auto&, auto&) { return grpc::Status::OK; };
  const CliResult run = Generate({"--prompt", "x"});
  EXPECT_EQ(run.code, 1);
  EXPECT_THAT(run.err, HasSubstr("finish"));
}

TEST_F(CommandsTest, TheTimeoutEndsAnAnswerThatDoesNotCome) {
  router_.on_generate = [](grpc::ServerContext& context, const auto&, auto&) {
    while (!context.IsCancelled()) absl::SleepFor(absl::Milliseconds(1));
    return grpc::Status::CANCELLED;
  };
  const CliResult run = Generate({"--prompt", "x", "--timeout", "100ms"});
  EXPECT_EQ(run.code, 1);
  EXPECT_THAT(run.err, HasSubstr("DEADLINE_EXCEEDED: not done within --timeout 100ms\n"));
}

TEST_F(CommandsTest, AnInterruptCancelsTheCallAndExitsWith130) {
  Interrupt interrupt;
  router_.on_generate = [&interrupt](grpc::ServerContext& context, const auto&, auto& writer) {
    writer.Write(MakeChunk(0, "Hel", {1}));
    interrupt.Trigger();
    while (!context.IsCancelled()) absl::SleepFor(absl::Milliseconds(1));
    return grpc::Status::CANCELLED;
  };
  const CliResult run = RunCli({"generate", "--target", router_.target(), "--prompt", "x"}, "", &interrupt);
  EXPECT_EQ(run.code, 130);
  EXPECT_THAT(run.err, IsEmpty());
}

TEST(ConnectTest, SaysThatNothingListens) {
  // Port 1 of the loopback: no service is ever there.
  const CliResult run = RunCli({"generate", "--target", "127.0.0.1:1", "--prompt", "x"});
  EXPECT_EQ(run.code, 1);
  EXPECT_THAT(run.err, HasSubstr("nothing listens at 127.0.0.1:1"));
  EXPECT_THAT(run.err, HasSubstr("is baton-router running"));
}

TEST_F(CommandsTest, StatusShowsWorkersAndPairs) {
  router_.status.set_ready(true);
  router_.status.set_running_requests(1);
  v1::WorkerInfo& worker = *router_.status.add_workers();
  worker.set_worker_id("decode-0");
  worker.set_state("serving");
  worker.set_pages_used(12);
  worker.set_pages_quarantined(3);
  v1::PairInfo& pair = *router_.status.add_pairs();
  pair.set_prefill_worker("prefill-0");
  pair.set_decode_worker("decode-0");
  pair.set_state("ready");

  const CliResult table = RunCli({"status", "--target", router_.target()});
  EXPECT_EQ(table.code, 0);
  EXPECT_THAT(table.out, HasSubstr("ready, 1 request running\n"));
  EXPECT_THAT(table.out, HasSubstr("decode-0"));
  EXPECT_THAT(table.out, HasSubstr("QUARANTINED"));
  EXPECT_THAT(table.out, HasSubstr("prefill-0  decode-0  ready"));

  const CliResult json = RunCli({"status", "--target", router_.target(), "--json"});
  EXPECT_EQ(nlohmann::json::parse(json.out)["workers"][0]["pages_quarantined"], 3);
}

TEST_F(CommandsTest, StatusWithWaitFailsWhenNoPairGetsReady) {
  const CliResult run = RunCli({"status", "--target", router_.target(), "--wait", "300ms"});
  EXPECT_EQ(run.code, 1);
  EXPECT_THAT(run.err, HasSubstr("not ready within 300ms"));
  router_.status.set_ready(true);
  EXPECT_EQ(RunCli({"status", "--target", router_.target(), "--wait", "10s"}).code, 0);
}

}  // namespace
}  // namespace baton::testing
