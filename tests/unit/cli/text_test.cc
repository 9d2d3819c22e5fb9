// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <unistd.h>

#include "cli/console/input.h"
#include "cli/console/interrupt.h"
#include "cli/report/answer_text.h"
#include "cli/report/table.h"
#include "text/utf8.h"

namespace baton {
namespace {

TEST(JsonLine, HasTheProtosFieldNamesAndAnOutputIndexOfZero) {
  v1::GenerateResponse response;
  response.mutable_chunk()->set_text("two\nlines");
  response.mutable_chunk()->add_token_ids(7);

  const std::string line = ToJsonLine(response);

  EXPECT_EQ(line, R"({"chunk":{"output_index":0,"text":"two\nlines","token_ids":[7],"logprobs":[]}})");
}

TEST(JsonLine, IsValidUtf8WhateverTheMessageHolds) {
  v1::GenerateResponse response;
  response.mutable_chunk()->set_text("half \xE2\x82 of a code point");
  // Protobuf writes a warning of its own to stderr here.
  const std::string line = ToJsonLine(response);
  EXPECT_EQ(ValidUtf8Prefix(line), line.size());
}

TEST(HumanBytes, UsesBinaryUnits) {
  EXPECT_EQ(HumanBytes(0), "0 B");
  EXPECT_EQ(HumanBytes(1023), "1023 B");
  EXPECT_EQ(HumanBytes(1536), "1.5 KiB");
  EXPECT_EQ(HumanBytes(uint64_t{5} << 30), "5.0 GiB");
}

TEST(Count, PutsTheNounInThePluralUnlessItIsOne) {
  EXPECT_EQ(Count(0, "request"), "0 requests");
  EXPECT_EQ(Count(1, "request"), "1 request");
  EXPECT_EQ(Count(2, "request"), "2 requests");
}

TEST(SummaryLine, NamesLatenciesBytesWorkersAndWhyThereWasASecondAttempt) {
  v1::Finish finish;
  finish.mutable_timings()->set_ttft_seconds(0.25);
  finish.mutable_timings()->set_tpot_seconds(0.0015);
  finish.mutable_usage()->set_prompt_tokens(5);
  finish.mutable_usage()->set_completion_tokens(48);
  finish.add_attempts()->set_ended_by("decode_lost");
  v1::AttemptInfo& last = *finish.add_attempts();
  last.set_prefill_worker("p0");
  last.set_decode_worker("d1");
  last.set_kv_bytes(2048);
  last.set_transport("ucx:tcp");

  EXPECT_EQ(SummaryLine(finish),
            "TTFT 250.0 ms, TPOT 1.5 ms, 5 prompt + 48 output tokens, 2.0 KiB of KV handed over by ucx:tcp, "
            "p0 -> d1, 2 attempts (decode_lost)");
}

TEST(SummaryLine, SaysHowMuchOfThePromptWasCached) {
  v1::Finish finish;
  finish.mutable_usage()->set_prompt_tokens(40);
  finish.mutable_usage()->set_cached_prompt_tokens(32);
  EXPECT_NE(SummaryLine(finish).find("40 prompt (32 cached) + 0 output tokens"), std::string::npos);
}

TEST(SummaryLine, SaysWhenOneWorkerDidItAll) {
  v1::Finish finish;
  finish.add_attempts()->set_decode_worker("both-0");
  EXPECT_NE(SummaryLine(finish).find("no KV handed over, prefilled and decoded by both-0"), std::string::npos);
}

TEST(LogprobLines, HasOneLinePerTokenWithItsIndexAndAlternatives) {
  v1::Chunk chunk;
  chunk.set_output_index(7);
  for (const char* token : {"a", "\xFF"}) {
    v1::TokenLogprobs& logprobs = *chunk.add_logprobs();
    logprobs.mutable_chosen()->set_token(token);
    logprobs.mutable_chosen()->set_logprob(-0.5);
    v1::TokenLogprob& top = *logprobs.add_top();
    top.set_token("b");
    top.set_logprob(-1);
  }

  const std::string lines = LogprobLines(chunk);

  EXPECT_EQ(ValidUtf8Prefix(lines), lines.size());
  EXPECT_NE(lines.find("     7 \"a\"                -0.5000  \"b\" -1.0000\n"), std::string::npos) << lines;
  EXPECT_NE(lines.find("     8 "), std::string::npos) << lines;
}

TEST(Table, AlignsNumbersRightAndWordsLeft) {
  Table table({"NAME", "N"});
  table.AddRow({"a", "5"});
  table.AddRow({"longer", "123"});
  table.AddRow({"", "7"});
  EXPECT_EQ(table.ToString(),
            "NAME      N\n"
            "a         5\n"
            "longer  123\n"
            "-         7\n");
}

TEST(Table, AlignsWhatOnlyStartsWithADigitLeft) {
  Table table({"ADDRESS", "NONE", "MS"});
  table.AddRow({"127.0.0.1:50061", "", "3.25"});
  table.AddRow({"10.0.0.1:80", "", ""});
  EXPECT_EQ(table.ToString(),
            "ADDRESS          NONE    MS\n"
            "127.0.0.1:50061  -     3.25\n"
            "10.0.0.1:80      -        -\n");
}

class LineReaderTest : public ::testing::Test {
 protected:
  LineReaderTest() { EXPECT_EQ(pipe(fds_), 0); }
  ~LineReaderTest() override {
    close(fds_[0]);
    if (fds_[1] >= 0) close(fds_[1]);
  }
  void Write(const std::string& text) { ASSERT_EQ(write(fds_[1], text.data(), text.size()), ssize_t(text.size())); }
  void CloseWriter() {
    close(fds_[1]);
    fds_[1] = -1;
  }

  int fds_[2] = {-1, -1};
  Interrupt interrupt_;
  std::string line_;
};

TEST_F(LineReaderTest, GivesLinesThenALastOneWithoutNewlineThenTheEnd) {
  Write("one\n\nthree");
  CloseWriter();
  LineReader reader(fds_[0], interrupt_);
  ASSERT_EQ(reader.Next(&line_), LineReader::Result::kLine);
  EXPECT_EQ(line_, "one");
  ASSERT_EQ(reader.Next(&line_), LineReader::Result::kLine);
  EXPECT_EQ(line_, "");
  ASSERT_EQ(reader.Next(&line_), LineReader::Result::kLine);
  EXPECT_EQ(line_, "three");
  EXPECT_EQ(reader.Next(&line_), LineReader::Result::kEnd);
}

TEST_F(LineReaderTest, AnInterruptEndsAWaitForInputThatNeverComes) {
  LineReader reader(fds_[0], interrupt_);
  std::thread presser([this] { interrupt_.Trigger(); });
  EXPECT_EQ(reader.Next(&line_), LineReader::Result::kInterrupted);
  presser.join();

  // Once it is forgotten, reading goes on.
  interrupt_.Reset();
  Write("again\n");
  EXPECT_EQ(reader.Next(&line_), LineReader::Result::kLine);
}

TEST_F(LineReaderTest, RefusesALineThatNeverEnds) {
  std::thread writer([this] {
    const std::string piece(LineReader::kMaxLineBytes + 8192, 'x');
    (void)!write(fds_[1], piece.data(), piece.size());
    CloseWriter();
  });
  LineReader reader(fds_[0], interrupt_);
  EXPECT_EQ(reader.Next(&line_), LineReader::Result::kTooLong);
  // Let the writer finish.
  char rest[8192];
  while (read(fds_[0], rest, sizeof(rest)) > 0) {
  }
  writer.join();
}

TEST(Interrupt, CallsTheCancelOfItsScopeOnlyWhileTheScopeLives) {
  Interrupt interrupt;
  int calls = 0;
  {
    const Interrupt::Scope scope(interrupt, [&calls] { ++calls; });
    interrupt.Trigger();
    EXPECT_EQ(calls, 1);
  }
  interrupt.Trigger();
  EXPECT_EQ(calls, 1);
}

TEST(Interrupt, AScopeThatStartsAfterTheTriggerIsCancelledAtOnce) {
  Interrupt interrupt;
  interrupt.Trigger();
  bool cancelled = false;
  const Interrupt::Scope scope(interrupt, [&cancelled] { cancelled = true; });
  EXPECT_TRUE(cancelled);
}

}  // namespace
}  // namespace baton
