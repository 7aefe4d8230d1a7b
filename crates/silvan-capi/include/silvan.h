/* The C interface of silvan, a simulator of lossless networks.
 *
 * A driver opens a scenario, sends messages between its hosts, and is called back when they have arrived
 * or when a time has passed. docs/guide/c-interface.md has an example and the rules.
 *
 * Generated from crates/silvan-capi by `make header`; do not edit. */


#ifndef SILVAN_H
#define SILVAN_H

#include <stddef.h>
#include <stdint.h>

// Result of a function. `silvan_last_error` returns the text of a thread's last error.
typedef enum silvan_status {
  // Done.
  SILVAN_STATUS_OK = 0,
  // An argument is null, not UTF-8, or names no simulation, host, port or counter.
  SILVAN_STATUS_BAD_ARGUMENT = 1,
  // The scenario cannot be read or is not valid; the text has the place and often a hint.
  SILVAN_STATUS_BAD_SCENARIO = 2,
  // The run cannot go on: a deadlock, messages that can no longer arrive, or the end of the clock after about 53 days.
  SILVAN_STATUS_RUN_FAILED = 3,
  // Not from a callback: the simulation is running.
  SILVAN_STATUS_IS_RUNNING = 4,
  // An error in silvan itself. The simulation can only be closed.
  SILVAN_STATUS_INTERNAL = 5,
} silvan_status;

// A simulation. It belongs to the thread that opened it.
//
// Pointers to it are only identifiers: a wrong pointer, or a pointer to a closed simulation, is an error and nothing
// worse.
typedef struct silvan_simulation silvan_simulation;

// A message that has arrived.
typedef struct silvan_message {
  // The sending host.
  uint32_t from;
  // The receiving host.
  uint32_t to;
  // Payload in bytes.
  uint64_t bytes;
  // The tag that the sender gave.
  uint64_t tag;
  // Send time, in picoseconds.
  uint64_t sent_ps;
  // Arrival time of the last byte, in picoseconds: now.
  uint64_t arrived_ps;
} silvan_message;

// Called when all of a message has arrived. It may send, start timers and stop the run, and must return: no exception
// and no longjmp may leave it. The message is valid until it returns.
typedef void (*silvan_on_arrival)(struct silvan_simulation *simulation,
                                  const struct silvan_message *message,
                                  void *user);

// Called when the time of a timer has come. The rules are those of `silvan_on_arrival`.
typedef void (*silvan_on_timer)(struct silvan_simulation *simulation, void *user);

// Totals of a simulation since its start.
typedef struct silvan_statistics {
  // The current instant, in picoseconds.
  uint64_t now_ps;
  // Messages that the driver has sent.
  uint64_t messages_sent;
  // Messages that have arrived.
  uint64_t messages_arrived;
  // Payload of the messages sent, in bytes.
  uint64_t bytes_sent;
  // Payload of the messages that have arrived, in bytes.
  uint64_t bytes_arrived;
  // Timers that have not gone off.
  uint64_t timers_pending;
  // Events that were processed.
  uint64_t events;
  // Data packets delivered, those of the scenario's own load included.
  uint64_t delivered_packets;
  // Delivered packets, each times the links that it crossed.
  uint64_t packet_hops;
  // Memory of the simulated network, in bytes.
  uint64_t memory_bytes;
} silvan_statistics;

// Counters of a host since the start.
typedef struct silvan_host_counters {
  // Payload whose injection has started, in bytes.
  uint64_t injected_bytes;
  // Payload received, in bytes.
  uint64_t delivered_bytes;
  // Data packets received.
  uint64_t delivered_packets;
  // Data packets received with a mark of congestion (FECN or ECN).
  uint64_t fecn_received;
  // Notifications of congestion received (BECN or CNP).
  uint64_t becn_received;
} silvan_host_counters;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// The version of the library, such as "1.0.0".
const char *silvan_version(void);

// The text of the last error in this thread, in English, without a line end; empty if there was none. It is valid until
// the next error in this thread.
const char *silvan_last_error(void);

// Opens the scenario of a file. Each of the `count` settings is text such as "run.seed=2", which replaces a key of the
// scenario; `settings` may be null if there are none. The scenario's fabric, congestion control and load are simulated; its
// duration, warm-up and probes have no effect. On an error `*simulation` is null.
//
// The caller sees to this:
// Pointers that are not null lead to strings that end with a zero, `count` of them for `settings`, and to room for a
// pointer.
enum silvan_status silvan_open_file(const char *path,
                                    const char *const *settings,
                                    size_t count,
                                    struct silvan_simulation **simulation);

// Opens a scenario that is given as text (TOML). Errors call it `name`, and the files that it names are looked for in the
// folder of `name`, as if it were the path of a file. Otherwise as `silvan_open_file`.
//
// The caller sees to this:
// As `silvan_open_file`.
enum silvan_status silvan_open_text(const char *toml,
                                    const char *name,
                                    const char *const *settings,
                                    size_t count,
                                    struct silvan_simulation **simulation);

// Closes a simulation. Callbacks that are pending are not called. Not from a callback.
enum silvan_status silvan_close(struct silvan_simulation *simulation);

// Writes the warnings about the scenario, one per line, as text that is valid until the simulation is closed.
//
// The caller sees to this:
// `warnings` is null or leads to room for a pointer.
enum silvan_status silvan_warnings(const struct silvan_simulation *simulation,
                                   const char **warnings);

// Writes the number of hosts. They are numbered from 0, in the order of the scenario's fabric.
//
// The caller sees to this:
// `count` is null or leads to room for the number.
enum silvan_status silvan_host_count(const struct silvan_simulation *simulation, uint32_t *count);

// Writes the name of a host, which is valid until the simulation is closed.
//
// The caller sees to this:
// `name` is null or leads to room for a pointer.
enum silvan_status silvan_host_name(const struct silvan_simulation *simulation,
                                    uint32_t host,
                                    const char **name);

// Writes the number of the host with this name.
//
// The caller sees to this:
// `name` is null or a string that ends with a zero; `host` is null or leads to room for the number.
enum silvan_status silvan_host_by_name(const struct silvan_simulation *simulation,
                                       const char *name,
                                       uint32_t *host);

// Sends a message now, from one host to another or to itself. When all of it has arrived, `on_arrival` is called with
// `user`; it may be null. Messages between two hosts arrive in the order in which they were sent where all packets take one
// path. A message without bytes takes a packet, too.
enum silvan_status silvan_send(struct silvan_simulation *simulation,
                               uint32_t from,
                               uint32_t to,
                               uint64_t bytes,
                               uint64_t tag,
                               silvan_on_arrival on_arrival,
                               void *user);

// Calls `on_timer` with `user` after a time in picoseconds. Timers of one instant go off in the order in which they were
// started.
enum silvan_status silvan_schedule(struct silvan_simulation *simulation,
                                   uint64_t delay_ps,
                                   silvan_on_timer on_timer,
                                   void *user);

// Writes the current instant in picoseconds since the start. It can be read in callbacks, too.
//
// The caller sees to this:
// `now_ps` is null or leads to room for the number.
enum silvan_status silvan_now(const struct silvan_simulation *simulation, uint64_t *now_ps);

// Runs until all messages of the driver have arrived and all its timers have gone off, or until a callback calls
// `silvan_stop`. The current instant is then that of the last of them. Not from a callback.
enum silvan_status silvan_run_until_idle(struct silvan_simulation *simulation);

// Runs until an instant in picoseconds since the start, or until a callback calls `silvan_stop`. Events at the instant
// itself belong to the next run. Without effect if the instant has passed. Not from a callback.
enum silvan_status silvan_run_until(struct silvan_simulation *simulation,
                                    uint64_t end_ps);

// Ends the run at the current instant, from a callback. Other messages that arrive with the same packet are reported
// before it ends. The next run goes on from there. Without effect outside a run.
enum silvan_status silvan_stop(struct silvan_simulation *simulation);

// Writes totals since the start. Not from a callback.
//
// The caller sees to this:
// `statistics` is null or leads to room for them.
enum silvan_status silvan_read_statistics(const struct silvan_simulation *simulation,
                                          struct silvan_statistics *statistics);

// Writes the counters of a host. Not from a callback.
//
// The caller sees to this:
// `counters` is null or leads to room for them.
enum silvan_status silvan_read_host(const struct silvan_simulation *simulation,
                                    uint32_t host,
                                    struct silvan_host_counters *counters);

// Writes a counter of a port of a host or switch, such as `xmit_bytes`; times are in picoseconds. The reference of result
// tables lists the counters, as columns of the table "ports". Not from a callback.
//
// The caller sees to this:
// `node` and `counter` are null or strings that end with a zero; `value` is null or leads to room for the number.
enum silvan_status silvan_read_port(const struct silvan_simulation *simulation,
                                    const char *node,
                                    uint8_t port,
                                    const char *counter,
                                    uint64_t *value);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* SILVAN_H */
