// SPDX-License-Identifier: Apache-2.0
// A test suite whose tests share one cluster. Each test leaves the cluster idle: no page in use or in quarantine.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "cluster.h"
#include "tests/status_matchers.h"

namespace baton::testing {

// A suite derives from this class and calls StartCluster from SetUpTestSuite.
class ClusterTest : public ::testing::Test {
 protected:
  static void StartCluster(ClusterSpec spec) { ASSERT_OK_AND_ASSIGN(cluster_, Cluster::Start(std::move(spec))); }
  static void TearDownTestSuite() { cluster_.reset(); }

  void SetUp() override { ASSERT_NE(cluster_, nullptr) << "the suite's cluster did not start"; }
  void TearDown() override {
    if (cluster_ == nullptr) return;
    EXPECT_OK(cluster_->WaitIdle());
  }

  static Reply Generate(const v1::GenerateRequest& request, const CallOptions& options = {}) {
    return cluster_->client().Generate(request, options);
  }

  static inline std::unique_ptr<Cluster> cluster_;
};

// Checks for OK and a stream that kept the API's promises.
inline ::testing::AssertionResult Succeeded(const Reply& reply) {
  if (!reply.status.ok()) {
    return ::testing::AssertionFailure() << "status " << reply.status.error_code() << ": "
                                         << reply.status.error_message();
  }
  if (!reply.broken_promise.empty()) return ::testing::AssertionFailure() << reply.broken_promise;
  return ::testing::AssertionSuccess();
}

// Checks for status `code` with a message that contains `text`.
inline ::testing::AssertionResult Refused(const Reply& reply, grpc::StatusCode code, const std::string& text) {
  if (reply.status.error_code() != code || reply.status.error_message().find(text) == std::string::npos) {
    return ::testing::AssertionFailure() << "expected status " << code << " with \"" << text << "\", got "
                                         << reply.status.error_code() << ": " << reply.status.error_message();
  }
  if (!reply.broken_promise.empty()) return ::testing::AssertionFailure() << reply.broken_promise;
  return ::testing::AssertionSuccess();
}

}  // namespace baton::testing
