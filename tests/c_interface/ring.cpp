// A driver: ring all-reduces on the hosts of a scenario, through the C interface of silvan.
//
//   ring SCENARIO BYTES ROUNDS [SETTING...]
//
// Each host passes n - 1 reduced and n - 1 gathered parts to its right neighbour. It sends the next part when that of its
// left neighbour has arrived, and starts the next round when a barrier by timers has passed. The driver checks order, tags
// and times of all arrivals, and prints the end of each round in picoseconds.

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "silvan.h"

namespace {

/// An error of the library, with its text.
void check(silvan_status status)
{
    if (status != SILVAN_STATUS_OK) {
        throw std::runtime_error(silvan_last_error());
    }
}

struct Close {
    void operator()(silvan_simulation *simulation) const { silvan_close(simulation); }
};

using Simulation = std::unique_ptr<silvan_simulation, Close>;

Simulation open(const char *path, const std::vector<const char *> &settings)
{
    silvan_simulation *simulation = nullptr;
    check(silvan_open_file(path, settings.data(), settings.size(), &simulation));
    return Simulation(simulation);
}

uint64_t now(const silvan_simulation *simulation)
{
    uint64_t now_ps = 0;
    check(silvan_now(simulation, &now_ps));
    return now_ps;
}

/// The all-reduce as a state machine: what each host has sent and received.
class Ring {
public:
    Ring(silvan_simulation *simulation, uint64_t bytes, unsigned rounds)
        : simulation_(simulation), bytes_(bytes), rounds_(rounds)
    {
        check(silvan_host_count(simulation, &hosts_));
        received_.resize(hosts_);
        ends_.reserve(rounds);
    }

    /// Starts the first round from a timer, as all others.
    void start()
    {
        check(silvan_schedule(simulation_, 0, begin, this));
    }

    const std::vector<uint64_t> &ends() const { return ends_; }

    /// What has gone wrong in a callback, where no exception may be thrown.
    const std::string &failure() const { return failure_; }

    /// Bytes that all hosts send in a round: 2 (n - 1) / n of the vector each.
    uint64_t bytes_in_a_round() const
    {
        return 2 * (hosts_ - 1) * bytes_;
    }

private:
    /// Parts that a host passes on in a round.
    uint32_t steps() const { return 2 * (hosts_ - 1); }

    /// The size of a part: the first parts have the rest of the bytes.
    uint64_t part(uint32_t place) const
    {
        return bytes_ / hosts_ + (place < bytes_ % hosts_ ? 1 : 0);
    }

    /// Which part a host sends in a step: the number moves back by one from step to step.
    uint32_t part_of(uint32_t host, uint32_t step) const
    {
        return (host + 2 * hosts_ - step) % hosts_;
    }

    static void begin(silvan_simulation *, void *user)
    {
        Ring &ring = *static_cast<Ring *>(user);
        ring.guard([&] {
            ring.done_ = 0;
            ring.received_.assign(ring.hosts_, 0);
            for (uint32_t host = 0; host < ring.hosts_; ++host) {
                ring.send(host, 0);
            }
        });
    }

    static void arrived(silvan_simulation *, const silvan_message *message, void *user)
    {
        Ring &ring = *static_cast<Ring *>(user);
        ring.guard([&] { ring.receive(*message); });
    }

    void send(uint32_t from, uint32_t step)
    {
        const uint32_t to = (from + 1) % hosts_;
        check(silvan_send(simulation_, from, to, part(part_of(from, step)), step, arrived, this));
    }

    void receive(const silvan_message &message)
    {
        const uint32_t host = message.to;
        if (message.from != (host + hosts_ - 1) % hosts_) {
            throw std::runtime_error("a message from a host that is no left neighbour");
        }
        if (message.tag != received_[host]) {
            throw std::runtime_error("the parts of a neighbour are out of order");
        }
        if (message.bytes != part(part_of(message.from, received_[host]))) {
            throw std::runtime_error("a part has another size than it was sent with");
        }
        if (message.arrived_ps != now(simulation_) || message.arrived_ps <= message.sent_ps) {
            throw std::runtime_error("a message arrived at another instant than now");
        }
        const uint32_t step = ++received_[host];
        if (step < steps()) {
            send(host, step);
        } else if (++done_ == hosts_) {
            ends_.push_back(message.arrived_ps);
            if (ends_.size() < rounds_) {
                check(silvan_schedule(simulation_, 0, begin, this));
            }
        }
    }

    /// Keeps an exception from leaving a callback.
    template <typename Call>
    void guard(Call call)
    {
        try {
            call();
        } catch (const std::exception &error) {
            failure_ = error.what();
            silvan_stop(simulation_);
        }
    }

    silvan_simulation *simulation_;
    uint64_t bytes_;
    unsigned rounds_;
    uint32_t hosts_ = 0;
    uint32_t done_ = 0;
    std::vector<uint32_t> received_;
    std::vector<uint64_t> ends_;
    std::string failure_;
};

void run(int count, char **arguments)
{
    if (count < 4) {
        throw std::runtime_error("usage: ring SCENARIO BYTES ROUNDS [SETTING...]");
    }
    const std::vector<const char *> settings(arguments + 4, arguments + count);
    const Simulation simulation = open(arguments[1], settings);
    const auto rounds = static_cast<unsigned>(std::strtoul(arguments[3], nullptr, 10));
    Ring ring(simulation.get(), std::strtoull(arguments[2], nullptr, 10), rounds);
    ring.start();
    check(silvan_run_until_idle(simulation.get()));
    if (!ring.failure().empty()) {
        throw std::runtime_error(ring.failure());
    }
    silvan_statistics statistics = {};
    check(silvan_read_statistics(simulation.get(), &statistics));
    if (ring.ends().size() != rounds || statistics.now_ps != ring.ends().back()) {
        throw std::runtime_error("the run ended at another instant than the last round");
    }
    if (statistics.messages_sent != statistics.messages_arrived || statistics.timers_pending != 0
        || statistics.bytes_arrived != rounds * ring.bytes_in_a_round()) {
        throw std::runtime_error("messages, timers or bytes are left over");
    }
    for (const uint64_t end : ring.ends()) {
        std::printf("%" PRIu64 "\n", end);
    }
}

} // namespace

int main(int count, char **arguments)
{
    try {
        run(count, arguments);
    } catch (const std::exception &error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 2;
    }
    return 0;
}
