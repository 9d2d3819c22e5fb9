// SPDX-License-Identifier: Apache-2.0
#include "common/metrics_buckets.h"

namespace baton {

// Literals, not products: 0.1 * 6 is not 0.6, and scrapers would see le="0.6000000000000001". The page has 16 digits,
// with which 0.07 would be 0.07000000000000001: hence 0.0707.

BucketSet TokenGapBuckets() {
  return {.quantity = "gaps between tokens, and the gap that a handoff adds",
          .boundaries = {0.0001, 0.00014, 0.0002, 0.00027, 0.00037, 0.0005, 0.0007,  //
                         0.001,  0.0014,  0.002,  0.0027,  0.0037,  0.005,  0.007,   //
                         0.01,   0.014,   0.02,   0.027,   0.037,   0.05,   0.0707,  //
                         0.1,    1,       10},
          .resolved_from = 0.0001,
          .resolved_to = 0.1};
}

BucketSet StepBuckets() {
  return {.quantity = "steps, KV transfers, and a request's mean time per output token",
          .boundaries = {0.0001, 0.001, 0.0014, 0.002, 0.0027, 0.0037, 0.005,  0.007,  //
                         0.01,   0.014, 0.02,   0.027, 0.037,  0.05,   0.0707,         //
                         0.1,    0.14,  0.2,    0.27,  0.37,   0.5,    0.7,            //
                         1,      10},
          .resolved_from = 0.001,
          .resolved_to = 1};
}

BucketSet WaitBuckets() {
  return {.quantity = "waiting: queues, pauses",
          .boundaries = {0.001, 0.01, 0.014, 0.02, 0.027, 0.037, 0.05, 0.0707,  //
                         0.1,   0.14, 0.2,   0.27, 0.37,  0.5,   0.7,           //
                         1,     1.4,  2,     2.7,  3.7,   5,     7,             //
                         10,    60},
          .resolved_from = 0.01,
          .resolved_to = 10};
}

BucketSet FirstTokenBuckets() {
  return {.quantity = "first tokens, and computing a prompt",
          .boundaries = {0.02, 0.027, 0.037, 0.05, 0.0707,            //
                         0.1,  0.14,  0.2,   0.27, 0.37,   0.5, 0.7,  //
                         1,    1.4,   2,     2.7,  3.7,    5,   7,    //
                         10,   14,    20,    60,   120},
          .resolved_from = 0.02,
          .resolved_to = 20};
}

BucketSet WholeRequestBuckets() {
  return {.quantity = "whole requests",
          .boundaries = {0.05, 0.2, 0.7,                     //
                         1,    1.4, 2,   2.7, 3.7, 5,   7,   //
                         10,   14,  20,  27,  37,  50,  70,  //
                         100,  140, 200, 270, 370, 500, 700},
          .resolved_from = 0.7,
          .resolved_to = 700};
}

BucketSet BatchBuckets() {
  return {.quantity = "sequences in a step",
          .boundaries = {1,   2,   3,   4,   5,   7,    10,        //
                         14,  20,  27,  37,  50,  70,   100, 140,  //
                         200, 270, 370, 500, 700, 1000, 2000},
          .resolved_from = 5,
          .resolved_to = 1000};
}

std::vector<BucketSet> AllBucketSets() {
  return {TokenGapBuckets(), StepBuckets(), WaitBuckets(), FirstTokenBuckets(), WholeRequestBuckets(), BatchBuckets()};
}

}  // namespace baton
