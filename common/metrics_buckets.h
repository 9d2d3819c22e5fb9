// SPDX-License-Identifier: Apache-2.0
// Histogram boundaries, one set per kind of quantity.
//
// A set has at most 24 boundaries. Seven boundaries a decade (1, 1.4, 2, 2.7, 3.7, 5, 7) cover three decades. There, a
// p95 of histogram_quantile, which interpolates within a bucket, is right within 5 % for latencies that spread at least
// as much as an exponential distribution. The other boundaries only tell how far values go.
#pragma once

#include <prometheus/histogram.h>

#include <string_view>
#include <vector>

namespace baton {

struct BucketSet {
  std::string_view quantity;  // a few words, for documentation
  prometheus::Histogram::BucketBoundaries boundaries;
  // The range in which an estimated p95 is right within 5 %.
  double resolved_from = 0;
  double resolved_to = 0;
};

BucketSet TokenGapBuckets();      // 0.1 ms to 100 ms: gaps between tokens, what a handoff adds
BucketSet StepBuckets();          // 1 ms to 1 s: steps, transfers, the mean time per output token
BucketSet WaitBuckets();          // 10 ms to 10 s: queues, pauses
BucketSet FirstTokenBuckets();    // 20 ms to 20 s: first tokens, prefills
BucketSet WholeRequestBuckets();  // 0.7 s to 700 s
BucketSet BatchBuckets();         // 5 to 1000 sequences

// Every set, once.
std::vector<BucketSet> AllBucketSets();

}  // namespace baton
