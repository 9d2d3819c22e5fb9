// SPDX-License-Identifier: Apache-2.0
#include "virtual_network.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <queue>
#include <random>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/file_descriptor.h"
#include "common/mutex.h"
#include "common/status_macros.h"
#include "common/steady_time.h"

namespace baton::testing {
namespace {

constexpr int kMtu = 9000;
constexpr char kDevice[] = "tun0";
constexpr absl::Duration kPoll = absl::Milliseconds(20);  // a change or the end is seen after this long

absl::Status Error(const std::string& what) {
  const int error = errno;
  const std::string text = absl::StrCat(what, ": ", std::generic_category().message(error));
  if (error == EPERM || error == EACCES) return absl::PermissionDeniedError(text);
  if (error == ENOENT || error == ENODEV) return absl::NotFoundError(text);
  return absl::InternalError(text);
}

absl::Status Configure(int socket, const char* device, const std::string& address, int mtu) {
  ifreq request = {};
  std::strncpy(request.ifr_name, device, IFNAMSIZ - 1);
  auto& in = reinterpret_cast<sockaddr_in&>(request.ifr_addr);
  if (!address.empty()) {
    in.sin_family = AF_INET;
    inet_pton(AF_INET, address.c_str(), &in.sin_addr);
    if (ioctl(socket, SIOCSIFADDR, &request) != 0) return Error(absl::StrCat(device, ": address ", address));
    inet_pton(AF_INET, "255.255.255.0", &in.sin_addr);
    if (ioctl(socket, SIOCSIFNETMASK, &request) != 0) return Error(absl::StrCat(device, ": netmask"));
    request.ifr_mtu = mtu;
    if (ioctl(socket, SIOCSIFMTU, &request) != 0) return Error(absl::StrCat(device, ": MTU"));
  }
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  if (ioctl(socket, SIOCSIFFLAGS, &request) != 0) return Error(absl::StrCat(device, ": up"));
  return absl::OkStatus();
}

struct Node {
  std::string name;
  std::string address;
  FileDescriptor name_space;
  FileDescriptor device;
};

// A new namespace, in which the calling thread then is, and its device.
absl::StatusOr<Node> MakeNode(std::string name, size_t index) {
  Node node{.name = std::move(name), .address = absl::StrCat("10.77.0.", index + 1), .name_space = {}, .device = {}};
  if (unshare(CLONE_NEWNET) != 0) return Error("a new network namespace");
  node.name_space = FileDescriptor(open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
  if (node.name_space.get() < 0) return Error("/proc/thread-self/ns/net");
  node.device = FileDescriptor(open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC));
  if (node.device.get() < 0) return Error("/dev/net/tun");
  ifreq request = {};
  std::strncpy(request.ifr_name, kDevice, IFNAMSIZ - 1);
  request.ifr_flags = IFF_TUN | IFF_NO_PI;
  if (ioctl(node.device.get(), TUNSETIFF, &request) != 0) return Error("a TUN device");
  const FileDescriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  BATON_RETURN_IF_ERROR(Configure(socket.get(), "lo", "", 0));
  BATON_RETURN_IF_ERROR(Configure(socket.get(), kDevice, node.address, kMtu));
  return node;
}

}  // namespace

// Moves packets between devices, on one thread. Owns the packets that are under way.
class VirtualNetwork::Switch {
 public:
  explicit Switch(std::vector<Node> nodes)
      : nodes_(std::move(nodes)), cut_(nodes_.size(), std::vector<bool>(nodes_.size())) {
    for (const Node& node : nodes_) names_.push_back(node.name);
    thread_ = std::thread([this] { Run(); });
  }
  ~Switch() {
    stopping_ = true;
    thread_.join();
  }

  size_t IndexOf(const std::string& name) const {
    const auto found = std::find(names_.begin(), names_.end(), name);
    if (found == names_.end()) {
      std::cerr << "the test names a node that does not exist: " << name << std::endl;
      std::abort();
    }
    return found - names_.begin();
  }
  const Node& node(const std::string& name) const { return nodes_[IndexOf(name)]; }
  const std::vector<std::string>& names() const { return names_; }

  void SetCut(const std::string& from, const std::string& to, bool cut) {
    MutexLock lock(mutex_);
    cut_[IndexOf(from)][IndexOf(to)] = cut;
  }
  void SetDelay(absl::Duration delay) {
    MutexLock lock(mutex_);
    delay_ = delay;
  }
  void SetLoss(double share) {
    MutexLock lock(mutex_);
    loss_ = share;
  }
  void Heal() {
    MutexLock lock(mutex_);
    for (std::vector<bool>& row : cut_) std::fill(row.begin(), row.end(), false);
    delay_ = absl::ZeroDuration();
    loss_ = 0;
  }
  Counts counts() const { return {delivered_, dropped_}; }

 private:
  struct Packet {
    SteadyTime due;
    uint64_t number;  // packets of one due time stay in order
    size_t to;
    std::vector<char> bytes;
    bool operator<(const Packet& other) const {
      return std::pair(due, number) > std::pair(other.due, other.number);  // the first is the greatest
    }
  };

  void Run() {
    std::vector<pollfd> waits;
    waits.reserve(nodes_.size());
    for (const Node& node : nodes_) waits.push_back({.fd = node.device.get(), .events = POLLIN, .revents = 0});
    while (!stopping_) {
      absl::Duration wait = kPoll;
      if (!under_way_.empty()) wait = std::clamp(under_way_.top().due - SteadyTime::Now(), absl::ZeroDuration(), kPoll);
      const timespec timeout = absl::ToTimespec(wait);
      ppoll(waits.data(), waits.size(), &timeout, nullptr);
      for (size_t from = 0; from < nodes_.size(); ++from) {
        if ((waits[from].revents & POLLIN) != 0) TakeFrom(from);
      }
      while (!under_way_.empty() && under_way_.top().due <= SteadyTime::Now()) {
        Deliver(under_way_.top());
        under_way_.pop();
      }
    }
  }

  void TakeFrom(size_t from) {
    char buffer[kMtu + 64];
    for (int i = 0; i < 64; ++i) {
      const ssize_t size = read(nodes_[from].device.get(), buffer, sizeof(buffer));
      if (size <= 0) return;
      constexpr ssize_t kHeader = 20;
      constexpr int kDestination = 16;  // its last byte is the node's number
      if (size < kHeader || (buffer[0] & 0xf0) != 0x40) continue;
      const size_t to = static_cast<uint8_t>(buffer[kDestination + 3]) - size_t{1};
      if (to >= nodes_.size()) continue;
      MutexLock lock(mutex_);
      if (cut_[from][to] || std::uniform_real_distribution<double>()(random_) < loss_) {
        ++dropped_;
        continue;
      }
      Packet packet{SteadyTime::Now() + delay_, next_++, to, std::vector<char>(buffer, buffer + size)};
      if (delay_ > absl::ZeroDuration()) {
        under_way_.push(std::move(packet));
      } else {
        Deliver(packet);
      }
    }
  }

  // A full device drops it, as devices do.
  void Deliver(const Packet& packet) {
    const ssize_t written = write(nodes_[packet.to].device.get(), packet.bytes.data(), packet.bytes.size());
    ++(written == static_cast<ssize_t>(packet.bytes.size()) ? delivered_ : dropped_);
  }

  const std::vector<Node> nodes_;
  std::vector<std::string> names_;
  Mutex mutex_;
  std::vector<std::vector<bool>> cut_ ABSL_GUARDED_BY(mutex_);  // [from][to]
  absl::Duration delay_ ABSL_GUARDED_BY(mutex_);
  double loss_ ABSL_GUARDED_BY(mutex_) = 0;
  std::atomic<uint64_t> delivered_ = 0;
  std::atomic<uint64_t> dropped_ = 0;
  std::atomic<bool> stopping_ = false;
  // The thread's:
  std::priority_queue<Packet> under_way_;
  uint64_t next_ = 0;
  std::mt19937_64 random_;
  std::thread thread_;
};

// /sys has to show that network's devices: UCX looks for them there.
bool EnterNetwork(int namespace_fd) {
  return setns(namespace_fd, CLONE_NEWNET) == 0 && unshare(CLONE_NEWNS) == 0 &&
         mount("none", "/sys", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         mount("sysfs", "/sys", "sysfs", 0, nullptr) == 0;
}

VirtualNetwork::VirtualNetwork(std::unique_ptr<Switch> network) : switch_(std::move(network)) {}
VirtualNetwork::~VirtualNetwork() = default;

absl::StatusOr<std::unique_ptr<VirtualNetwork>> VirtualNetwork::Create(std::vector<std::string> nodes) {
  if (nodes.empty() || nodes.size() > 250) return absl::InvalidArgumentError("expected 1 to 250 nodes");
  std::vector<Node> made;
  for (size_t i = 0; i < nodes.size(); ++i) {
    BATON_ASSIGN_OR_RETURN(Node node, MakeNode(std::move(nodes[i]), i));
    made.push_back(std::move(node));
  }
  if (setns(made[0].name_space.get(), CLONE_NEWNET) != 0) return Error("back to the first namespace");
  std::unique_ptr<VirtualNetwork> network(new VirtualNetwork(std::make_unique<Switch>(std::move(made))));
  BATON_RETURN_IF_ERROR(network->Try());
  return network;
}

absl::Status VirtualNetwork::Try() const {
  if (nodes().size() < 2) return absl::OkStatus();
  const FileDescriptor listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  inet_pton(AF_INET, this->address(nodes()[0]).c_str(), &address.sin_addr);
  socklen_t size = sizeof(address);
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (bind(listener.get(), any, size) != 0 || listen(listener.get(), 1) != 0 ||
      getsockname(listener.get(), any, &size) != 0) {
    return Error("a socket in the first node");
  }
  const int name_space = namespace_fd(nodes()[1]);
  const pid_t child = fork();
  if (child == 0) {
    if (!EnterNetwork(name_space)) _exit(1);
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    const timeval limit = {.tv_sec = 5, .tv_usec = 0};
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    _exit(connect(fd, any, sizeof(address)) == 0 ? 0 : 2);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) return Error("a process in the second node");
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return absl::OkStatus();
  return absl::UnavailableError(WIFEXITED(status) && WEXITSTATUS(status) == 1
                                    ? "a process cannot enter a node's network, or mount its /sys"
                                    : "a process in the second node does not reach the first");
}

const std::vector<std::string>& VirtualNetwork::nodes() const { return switch_->names(); }
std::string VirtualNetwork::address(const std::string& node) const { return switch_->node(node).address; }
int VirtualNetwork::namespace_fd(const std::string& node) const { return switch_->node(node).name_space.get(); }
void VirtualNetwork::Cut(const std::string& from, const std::string& to) { switch_->SetCut(from, to, true); }
void VirtualNetwork::Restore(const std::string& from, const std::string& to) { switch_->SetCut(from, to, false); }
void VirtualNetwork::SetDelay(absl::Duration delay) { switch_->SetDelay(delay); }
void VirtualNetwork::SetLoss(double share) { switch_->SetLoss(share); }
void VirtualNetwork::Heal() { switch_->Heal(); }
VirtualNetwork::Counts VirtualNetwork::counts() const { return switch_->counts(); }

}  // namespace baton::testing
