// SPDX-License-Identifier: Apache-2.0
#include "sentencepiece_peer.h"

#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

namespace baton {
namespace {

class Peer final : public SentencePiecePeer {
 public:
  bool Load(const std::string& proto) {
    if (!model_.LoadFromSerializedProto(proto).ok()) return false;
    for (int id = 0; id < model_.GetPieceSize(); ++id) {
      pieces_.push_back(model_.IdToPiece(id));
      scores_.push_back(model_.GetScore(id));
      types_.push_back(TypeOf(id));
    }
    return true;
  }

  std::vector<int> Encode(const std::string& text) const override { return model_.EncodeAsIds(text); }

 private:
  int32_t TypeOf(int id) const {
    if (model_.IsUnknown(id)) return 2;
    if (model_.IsControl(id)) return 3;
    return model_.IsByte(id) ? 6 : 1;
  }

  sentencepiece::SentencePieceProcessor model_;
};

class LineIterator final : public sentencepiece::SentenceIterator {
 public:
  explicit LineIterator(const std::vector<std::string>& lines) : lines_(lines) {}
  bool done() const override { return at_ == lines_.size(); }
  void Next() override { ++at_; }
  const std::string& value() const override { return lines_[at_]; }
  sentencepiece::util::Status status() const override { return {}; }

 private:
  const std::vector<std::string>& lines_;
  size_t at_ = 0;
};

}  // namespace

std::unique_ptr<SentencePiecePeer> SentencePiecePeer::Train(const std::string& type,
                                                            const std::vector<std::string>& lines) {
  std::string proto;
  LineIterator iterator(lines);
  const auto status = sentencepiece::SentencePieceTrainer::Train({{"model_type", type},
                                                                  {"vocab_size", "1800"},
                                                                  {"byte_fallback", "true"},
                                                                  {"normalization_rule_name", "identity"},
                                                                  {"remove_extra_whitespaces", "false"},
                                                                  {"minloglevel", "2"}},
                                                                 &iterator, &proto);
  auto peer = std::make_unique<Peer>();
  if (!status.ok() || !peer->Load(proto)) return nullptr;
  return peer;
}

}  // namespace baton
