//! The endpoint of the metrics under attack, over real sockets.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

use crate::endpoint::{Endpoint, EndpointEvent, EndpointLimits};
use crate::metrics::{ClosedLabels, ConnectionMetrics, Page, open_metrics};

/// A page of a few metrics.
struct Metrics {
    registry: Registry,
    sent: Family<[(&'static str, String); 2], Counter>,
    connections: ConnectionMetrics,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::default();
        let (sent, connections) = (Family::default(), ConnectionMetrics::default());
        registry.register("port_transmit_data", "Data sent by a port", sent.clone());
        let own = registry.sub_registry_with_prefix("silvan_dcms");
        own.register(
            "sweeps",
            "Sweeps of the counters",
            Counter::<u64>::default(),
        );
        connections.register(own);
        Self {
            registry,
            sent,
            connections,
        }
    }
}

impl Page for Metrics {
    fn text(&self) -> String {
        open_metrics(&self.registry)
    }

    fn connections(&self) -> &ConnectionMetrics {
        &self.connections
    }
}

/// Longer than any test.
const LONG: Duration = Duration::from_secs(3600);
const SHORT: Duration = Duration::from_millis(50);

const PATIENT: EndpointLimits = EndpointLimits {
    connections: 32,
    header: LONG,
    response: LONG,
};

fn open(limits: EndpointLimits) -> (Endpoint, Arc<Metrics>) {
    let metrics: Arc<Metrics> = Arc::default();
    let addresses = ["127.0.0.1:0".parse().unwrap()];
    let log = Box::new(|_: &EndpointEvent| {});
    let endpoint = Endpoint::open(&addresses, limits, metrics.clone(), log).unwrap();
    (endpoint, metrics)
}

fn connect(endpoint: &Endpoint) -> TcpStream {
    TcpStream::connect(endpoint.address()).unwrap()
}

fn closed(metrics: &Metrics, reason: &'static str) -> u64 {
    metrics
        .connections()
        .closed
        .get_or_create(&ClosedLabels { reason })
        .get()
}

fn until(condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(120);
    while !condition() {
        assert!(Instant::now() < deadline, "the condition never held");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The answer to a request; the head's lines and the body.
fn ask(endpoint: &Endpoint, request: &str) -> (Vec<String>, String) {
    let accept = "application/openmetrics-text;version=1.0.0;q=0.8,text/plain;q=0.5";
    query_accepting(endpoint, request, accept)
}

fn query_accepting(endpoint: &Endpoint, request: &str, accept: &str) -> (Vec<String>, String) {
    let mut stream = connect(endpoint);
    write!(
        stream,
        "{request}\r\nHost: localhost\r\nAccept: {accept}\r\n\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.lines().map(str::to_owned).collect(), body.to_owned())
}

fn assert_serves(endpoint: &Endpoint) {
    let (head, body) = ask(endpoint, "GET /metrics HTTP/1.1");
    assert_eq!(head[0], "HTTP/1.1 200 OK");
    assert!(body.ends_with("# EOF\n"));
}

/// Fills the metrics with more text than sockets' buffers hold.
fn fill(metrics: &Metrics) {
    for port in 0..200_000 {
        let port = format!("port {port} of a switch with a name");
        let labels = [("guid", "0x0123456789abcdef".to_owned()), ("port", port)];
        metrics.sent.get_or_create(&labels).inc();
    }
    assert!(metrics.text().len() > 16 << 20);
}

/// Oracle: RFC 9110: HEAD has the head of GET without its body; 405 names the methods that are
/// allowed; a query belongs to no path.
#[test]
fn the_endpoint_serves_metrics_and_nothing_else() {
    let (endpoint, _) = open(PATIENT);
    let (head, body) = ask(&endpoint, "GET /metrics HTTP/1.1");
    assert_eq!(head[0], "HTTP/1.1 200 OK");
    let is_typed = |line: &String| line.contains("application/openmetrics-text");
    assert!(head.iter().any(is_typed), "{head:?}");
    assert!(body.contains("silvan_dcms_sweeps_total 0"));
    for reason in ["no-request", "not-read", "too-many"] {
        let sample =
            format!("silvan_dcms_metrics_connections_closed_total{{reason=\"{reason}\"}} 0\n");
        assert!(body.contains(&sample), "{reason}");
    }
    let all = body.len();
    let (head, body) = ask(&endpoint, "HEAD /metrics HTTP/1.1");
    assert_eq!((head[0].as_str(), body.as_str()), ("HTTP/1.1 200 OK", ""));
    let length = head
        .iter()
        .find_map(|line| line.strip_prefix("content-length: "));
    assert_eq!(length.unwrap().parse::<usize>().unwrap(), all);
    let (head, body) = ask(&endpoint, "GET /metrics?collect[]=a&b HTTP/1.1");
    assert_eq!(head[0], "HTTP/1.1 200 OK");
    assert!(body.ends_with("# EOF\n"));
    for request in ["POST /metrics", "DELETE /metrics", "PATCH /metrics?a"] {
        let (head, _) = ask(&endpoint, &format!("{request} HTTP/1.1"));
        assert_eq!(head[0], "HTTP/1.1 405 Method Not Allowed");
        assert!(head.contains(&"allow: GET, HEAD".to_owned()), "{head:?}");
    }
    for request in ["GET /", "POST /", "GET /metrics/", "HEAD /x?/metrics"] {
        let (head, _) = ask(&endpoint, &format!("{request} HTTP/1.1"));
        assert_eq!(head[0], "HTTP/1.1 404 Not Found");
    }
    let (head, _) = ask(&endpoint, "GET /metrics HTTP/1.0");
    assert_eq!(head[0], "HTTP/1.0 200 OK");
    let (head, _) = ask(&endpoint, "nonsense");
    assert_eq!(head[0], "HTTP/1.1 400 Bad Request");
    let log = Box::new(|_: &EndpointEvent| {});
    let again = [endpoint.address()];
    assert!(Endpoint::open(&again, PATIENT, Arc::<Metrics>::default(), log).is_err());
}

/// Sends lines of a request's head, and returns the status line and the body.
fn status(endpoint: &Endpoint, head: &str) -> (String, String) {
    let mut stream = connect(endpoint);
    write!(stream, "{head}\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.lines().next().unwrap().to_owned(), body.to_owned())
}

/// Oracle: a browser that a site's name leads to this machine names the site as the host.
#[test]
fn loopback_metrics_are_for_loopback_hosts_alone() {
    let (endpoint, _) = open(PATIENT);
    for host in [
        "localhost",
        "LocalHost:9400",
        "127.0.0.1",
        "127.8.0.1:80",
        "[::1]:9400",
        "[::ffff:127.0.0.1]",
    ] {
        let head = format!("GET /metrics HTTP/1.1\r\nHost: {host}");
        assert_eq!(status(&endpoint, &head).0, "HTTP/1.1 200 OK", "{host}");
    }
    for lines in [
        "Host: attacker.example",
        "Host: localhost.attacker.example:9400",
        "Host: localhost@attacker.example",
        "Host: 10.0.0.1",
        "Host: [::2]",
        "Host: ",
        "Host: [::1",
        "Host: \u{e9}",
        "X: localhost",
        "Host: localhost\r\nHost: localhost",
        "Host: localhost\r\nHost: attacker.example",
    ] {
        for path in ["/metrics", "/"] {
            let (status, body) = status(&endpoint, &format!("GET {path} HTTP/1.1\r\n{lines}"));
            assert_eq!(status, "HTTP/1.1 403 Forbidden", "{lines}");
            assert!(!body.contains("silvan"), "{body}");
        }
    }
    let whole = "GET http://attacker.example/metrics HTTP/1.1\r\nHost: localhost";
    assert_eq!(status(&endpoint, whole).0, "HTTP/1.1 403 Forbidden");
    let whole = "GET http://localhost/metrics HTTP/1.1\r\nHost: localhost";
    assert_eq!(status(&endpoint, whole).0, "HTTP/1.1 200 OK");
}

/// Oracle: an address that others reach has names that this machine does not know.
#[test]
fn metrics_at_other_addresses_are_for_all_hosts() {
    let log = Box::new(|_: &EndpointEvent| {});
    let addresses = ["0.0.0.0:0".parse().unwrap()];
    let metrics: Arc<Metrics> = Arc::default();
    let endpoint = Endpoint::open(&addresses, PATIENT, metrics, log).unwrap();
    let head = "GET /metrics HTTP/1.1\r\nHost: node-1.example:9400";
    assert_eq!(status(&endpoint, head).0, "HTTP/1.1 200 OK");
}

/// Oracle: the log; a client repeats what it may 1,000 times.
#[test]
fn a_client_cannot_fill_the_log() {
    let (send, events) = std::sync::mpsc::channel();
    let log = Box::new(move |event: &EndpointEvent| send.send(event.clone()).unwrap());
    let addresses = ["127.0.0.1:0".parse().unwrap()];
    let endpoint = Endpoint::open(&addresses, PATIENT, Arc::<Metrics>::default(), log).unwrap();
    for number in 0..1_000 {
        match number % 4 {
            0 => drop(connect(&endpoint)),
            1 => drop(status(&endpoint, "GET /metrics HTTP/1.1\r\nHost: x")),
            2 => drop(status(&endpoint, "nonsense")),
            _ => {
                let mut stream = connect(&endpoint);
                write!(stream, "GET /metrics HTTP/1.1\r\n").unwrap();
            }
        }
    }
    assert_serves(&endpoint);
    drop(endpoint);
    assert_eq!(events.iter().count(), 0);
}

/// Oracle: RFC 9110, 12.5.1, and the text format 0.0.4, whose counters are described by the name of their samples.
#[test]
fn a_client_reads_the_format_that_it_prefers() {
    let (endpoint, _) = open(PATIENT);
    let open = "application/openmetrics-text";
    for (accept, is_open) in [
        ("*/*", false),
        ("text/html, */*;q=0.1", false),
        ("text/plain", false),
        (open, true),
        (
            "application/openmetrics-text; version=1.0.0; charset=utf-8",
            true,
        ),
        ("application/openmetrics-text;q=0", false),
        (
            "application/openmetrics-text;q=0.4,text/plain;version=0.0.4;q=0.5",
            false,
        ),
        (
            "application/openmetrics-text;q=0.6,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
            true,
        ),
    ] {
        let (head, body) = query_accepting(&endpoint, "GET /metrics HTTP/1.1", accept);
        let expected = match is_open {
            true => "content-type: application/openmetrics-text; version=1.0.0; charset=utf-8",
            false => "content-type: text/plain; version=0.0.4; charset=utf-8",
        };
        assert!(head.contains(&expected.to_owned()), "{accept}: {head:?}");
        assert!(head.contains(&"vary: accept".to_owned()), "{head:?}");
        assert_eq!(body.ends_with("# EOF\n"), is_open, "{accept}");
        assert_eq!(
            body.contains("# TYPE silvan_dcms_sweeps_total counter"),
            !is_open
        );
        assert!(body.contains("\nsilvan_dcms_sweeps_total 0\n"));
    }
}

/// Oracle: the limit: of 516 connections that ask for nothing, all but the last 32 are closed, and
/// who asks is answered.
#[test]
fn half_open_connections_keep_nobody_out() {
    let (endpoint, metrics) = open(PATIENT);
    let mut idle: Vec<TcpStream> = (0..516).map(|_| connect(&endpoint)).collect();
    until(|| closed(&metrics, "too-many") == 516 - 32);
    assert_serves(&endpoint);
    // The oldest have gone, and the newest still are there.
    assert_eq!(idle[0].read(&mut [0]).unwrap(), 0);
    let newest = idle.last_mut().unwrap();
    write!(newest, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut answer = String::new();
    newest.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"));
}

/// Oracle: the limit of 8 KiB; a header that stays below it is taken.
#[test]
fn a_header_without_end_is_refused() {
    let (endpoint, _) = open(PATIENT);
    let mut stream = connect(&endpoint);
    stream.write_all(b"GET /metrics HTTP/1.1\r\nX: ").unwrap();
    let block = [b'a'; 1 << 16];
    let accepted = (0..1024).take_while(|_| stream.write_all(&block).is_ok());
    let accepted = accepted.count();
    // Content of the sockets' buffers.
    assert!(accepted < 1024, "64 MiB of header were accepted");
    assert_serves(&endpoint);
    for (length, status) in [(7_000, "200"), (9_000, "431")] {
        let mut stream = connect(&endpoint);
        let header = "a".repeat(length);
        let request = format!("GET /metrics HTTP/1.1\r\nHost: localhost\r\nX: {header}\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut status_line = [0; 12];
        stream.read_exact(&mut status_line).unwrap();
        assert_eq!(status_line, format!("HTTP/1.1 {status}").as_bytes());
    }
}

/// Oracle: who pipelines and does not read is one client of many, and is closed in time.
#[test]
fn a_client_that_never_reads_blocks_nobody() {
    let (endpoint, metrics) = open(PATIENT);
    fill(&metrics);
    let mut deaf = connect(&endpoint);
    let requests = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(200);
    deaf.write_all(requests.as_bytes()).unwrap();
    assert_serves(&endpoint);
    // The answer is still in progress.
    assert_eq!(closed(&metrics, "not-read"), 0);
    drop(endpoint);

    let (endpoint, metrics) = open(EndpointLimits {
        response: SHORT,
        ..PATIENT
    });
    fill(&metrics);
    let mut deaf = connect(&endpoint);
    deaf.write_all(requests.as_bytes()).unwrap();
    until(|| closed(&metrics, "not-read") == 1);
    let mut answer = Vec::new();
    let end = deaf.read_to_end(&mut answer);
    let is_reset = |error: &std::io::Error| error.kind() == ErrorKind::ConnectionReset;
    assert!(end.is_ok() || end.is_err_and(|error| is_reset(&error)));
    assert!(answer.len() < metrics.text().len());
}

/// Oracle: the time limit, which a byte now and then does not extend.
#[test]
fn a_request_has_to_come_in_time() {
    let (endpoint, metrics) = open(EndpointLimits {
        header: SHORT,
        ..PATIENT
    });
    let mut silent = connect(&endpoint);
    assert_eq!(silent.read(&mut [0]).unwrap(), 0);
    assert_eq!(closed(&metrics, "no-request"), 1);
    let mut slow = connect(&endpoint);
    slow.write_all(b"GET /metrics HTTP/1.1\r\nX: ").unwrap();
    while slow.write_all(b"a").is_ok() {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(closed(&metrics, "no-request"), 2);
}

/// Oracle: the end of the endpoint waits for no client, and who has said all is answered.
#[test]
fn connections_end_with_either_side() {
    let (endpoint, _) = open(PATIENT);
    let mut half = connect(&endpoint);
    write!(half, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    half.shutdown(Shutdown::Write).unwrap();
    let mut answer = String::new();
    half.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("\nsilvan_dcms_sweeps_total 0\n"));
    for _ in 0..100 {
        let gone = connect(&endpoint);
        gone.shutdown(Shutdown::Both).unwrap();
    }
    assert_serves(&endpoint);
    let mut idle = connect(&endpoint);
    drop(endpoint);
    assert!(matches!(idle.read(&mut [0]), Ok(0) | Err(_)));
}
