/* Errors of the C interface: each line printed is "what: status: text". */

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "silvan.h"

static void print(const char *what, silvan_status status)
{
    printf("%s: %d: %s\n", what, (int)status, status == SILVAN_STATUS_OK ? "" : silvan_last_error());
}

static const char *const SCENARIO = "[fabric]\ngenerator = \"single-switch\"\nhosts = 2\n";

static void from_a_callback(silvan_simulation *simulation, void *user)
{
    silvan_statistics statistics;
    (void)user;
    print("run in a callback", silvan_run_until_idle(simulation));
    print("close in a callback", silvan_close(simulation));
    print("statistics in a callback", silvan_read_statistics(simulation, &statistics));
    print("unknown host in a callback", silvan_send(simulation, 0, 2, 8, 0, NULL, NULL));
    print("send in a callback", silvan_send(simulation, 0, 1, 8, 0, NULL, NULL));
}

static void stop(silvan_simulation *simulation, void *user)
{
    ++*(int *)user;
    silvan_stop(simulation);
    silvan_schedule(simulation, 0, stop, user);
}

int main(int count, char **arguments)
{
    silvan_simulation *simulation = (silvan_simulation *)&count;
    silvan_simulation *other = NULL;
    const char *text = NULL;
    const char *bad = count > 1 ? arguments[1] : "";
    const char *setting = "run.seed";
    uint64_t value = 0;
    uint32_t host = 0;
    int stopped = 0;

    print("no file", silvan_open_file("/nowhere/x.toml", NULL, 0, &simulation));
    print("no end", silvan_open_file("/dev/zero", NULL, 0, &simulation));
    printf("pointer after an error: %s\n", simulation == NULL ? "null" : "left");
    print("bad scenario", silvan_open_file(bad, NULL, 0, &simulation));
    print("bad text", silvan_open_text("[fabric]\nhosts = 0\n", "text", NULL, 0, &simulation));
    print("null path", silvan_open_file(NULL, NULL, 0, &simulation));
    print("no UTF-8", silvan_open_text("\xff", "text", NULL, 0, &simulation));
    print("null result", silvan_open_text(SCENARIO, "text", NULL, 0, NULL));
    print("null settings", silvan_open_text(SCENARIO, "text", NULL, 1, &simulation));
    print("bad setting", silvan_open_text(SCENARIO, "text", &setting, 1, &simulation));
    print("null simulation", silvan_run_until_idle(NULL));
    print("wrong simulation", silvan_run_until_idle((silvan_simulation *)&count));

    print("open", silvan_open_text(SCENARIO, "text", NULL, 0, &simulation));
    print("unknown host", silvan_send(simulation, 0, 2, 8, 0, NULL, NULL));
    print("unknown name", silvan_host_by_name(simulation, "host-001", &host));
    print("a switch", silvan_host_by_name(simulation, "switch-00", &host));
    print("null name", silvan_host_by_name(simulation, NULL, &host));
    print("null number", silvan_host_by_name(simulation, "host-0001", NULL));
    print("name", silvan_host_by_name(simulation, "host-0001", &host));
    print("name of a host", silvan_host_name(simulation, host, &text));
    printf("host %u: %s\n", (unsigned)host, text);
    print("unknown number", silvan_host_name(simulation, 7, &text));
    print("too large", silvan_send(simulation, 0, 1, UINT64_MAX, 0, NULL, NULL));
    print("too late", silvan_schedule(simulation, UINT64_MAX, from_a_callback, NULL));
    print("beyond the clock", silvan_run_until(simulation, UINT64_MAX));
    print("unknown node", silvan_read_port(simulation, "switch-0", 1, "xmit_bytes", &value));
    print("unknown port", silvan_read_port(simulation, "switch-00", 3, "xmit_bytes", &value));
    print("unknown counter", silvan_read_port(simulation, "switch-00", 1, "bytes", &value));

    print("timer", silvan_schedule(simulation, 1000, from_a_callback, NULL));
    print("run", silvan_run_until_idle(simulation));
    print("counter", silvan_read_port(simulation, "switch-00", 2, "xmit_pkts", &value));
    printf("packets to host-0001: %d\n", (int)value);

    print("stopping timer", silvan_schedule(simulation, 0, stop, &stopped));
    print("run", silvan_run_until_idle(simulation));
    printf("stopped: %d\n", stopped);
    print("run", silvan_run_until_idle(simulation));
    printf("stopped: %d\n", stopped);

    print("open another", silvan_open_text(SCENARIO, "text", NULL, 0, &other));
    print("close", silvan_close(simulation));
    print("close again", silvan_close(simulation));
    print("send to the closed one", silvan_send(simulation, 0, 1, 8, 0, NULL, NULL));
    print("send to the other", silvan_send(other, 0, 1, 8, 0, NULL, NULL));
    print("run the other", silvan_run_until_idle(other));
    print("close the other", silvan_close(other));
    return strcmp(silvan_version(), "") == 0;
}
