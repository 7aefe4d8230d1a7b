//! Serves the metrics over HTTP; at a loopback address only for loopback hosts, against DNS rebinding.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ACCEPT, ALLOW, CONTENT_TYPE, HOST, HeaderMap, HeaderValue, VARY};
use hyper::http::uri::Authority;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use tokio::net::TcpStream;
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle as Connection;
use tokio::time::{sleep, timeout};

use crate::log::{Level, LogEvent};
use crate::metrics::{ClosedLabels, Page, plain_text};

const OPEN_METRICS_TYPE: HeaderValue =
    HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");
const PLAIN_METRICS_TYPE: HeaderValue =
    HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
const TEXT_TYPE: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
/// Longest header of a request, in bytes.
const LONGEST_HEADER: usize = 8 << 10;
const FIRST_WAIT: Duration = Duration::from_millis(10);
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// Limits on clients.
#[derive(Clone, Copy, Debug)]
pub struct EndpointLimits {
    /// Open connections; one more closes the oldest.
    pub connections: usize,
    /// Time from the connection to the end of the request's header.
    pub header: Duration,
    /// Time from there to the end of the response.
    pub response: Duration,
}

impl Default for EndpointLimits {
    fn default() -> Self {
        Self {
            connections: 32,
            header: Duration::from_secs(5),
            response: Duration::from_secs(5),
        }
    }
}

/// An event of an endpoint.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "event")]
pub enum EndpointEvent {
    /// Connections to the metrics cannot be accepted, e.g. for lack of file descriptors.
    #[serde(rename = "metrics-not-accepted")]
    NotAccepted {
        /// The error.
        why: String,
    },
    /// Connections to the metrics are accepted again.
    #[serde(rename = "metrics-accepted")]
    Accepted {
        /// The number of errors before.
        errors: u64,
    },
}

impl fmt::Display for EndpointEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAccepted { why } => {
                write!(f, "connections to the metrics cannot be accepted: {why}")
            }
            Self::Accepted { errors } => write!(
                f,
                "connections to the metrics are accepted again, after {errors} errors"
            ),
        }
    }
}

impl LogEvent for EndpointEvent {
    fn level(&self) -> Level {
        match self {
            Self::NotAccepted { .. } => Level::Warning,
            Self::Accepted { .. } => Level::Info,
        }
    }
}

/// Takes the events of an endpoint.
pub type EndpointLog = Box<dyn FnMut(&EndpointEvent) + Send>;

/// An endpoint that serves until it is dropped.
pub struct Endpoint {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    address: SocketAddr,
}

impl Endpoint {
    /// Listens at the first available address; port 0 means any free port.
    pub fn open(
        addresses: &[SocketAddr],
        limits: EndpointLimits,
        page: Arc<dyn Page>,
        log: EndpointLog,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(addresses)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let listener = {
            let _context = runtime.enter();
            tokio::net::TcpListener::from_std(listener)?
        };
        let (stop, stopped) = oneshot::channel();
        let server = Server {
            listener,
            is_loopback: address.ip().to_canonical().is_loopback(),
            limits,
            page,
            log,
        };
        let thread = std::thread::Builder::new()
            .name("metrics".into())
            .spawn(move || {
                runtime.block_on(async {
                    tokio::select! {
                        () = server.run() => {}
                        // Nothing is sent: the sender is dropped with the endpoint.
                        _ = stopped => {}
                    }
                });
            })?;
        Ok(Self {
            stop: Some(stop),
            thread: Some(thread),
            address,
        })
    }

    /// Returns the address of the endpoint.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been reported.
            let _ = thread.join();
        }
    }
}

struct Server {
    listener: tokio::net::TcpListener,
    is_loopback: bool,
    limits: EndpointLimits,
    page: Arc<dyn Page>,
    log: EndpointLog,
}

impl Server {
    async fn run(mut self) {
        let mut open: VecDeque<Connection<()>> = VecDeque::new();
        let mut errors = 0_u64;
        let mut wait = FIRST_WAIT;
        loop {
            match self.listener.accept().await {
                Ok((stream, _)) => {
                    if errors > 0 {
                        (self.log)(&EndpointEvent::Accepted { errors });
                        (errors, wait) = (0, FIRST_WAIT);
                    }
                    open.retain(|connection| !connection.is_finished());
                    if open.len() >= self.limits.connections {
                        if let Some(oldest) = open.pop_front() {
                            count_closed(&*self.page, &ClosedLabels::TOO_MANY);
                            oldest.abort();
                        }
                    }
                    let page = Arc::clone(&self.page);
                    let connection = serve(stream, self.limits, page, self.is_loopback);
                    open.push_back(tokio::spawn(connection));
                    // A request that is there already is answered before the next one comes.
                    tokio::task::yield_now().await;
                }
                // A client that has gone must not fill the log.
                Err(error) if is_of_client(&error) => {
                    self.page.connections().accept_errors.inc();
                }
                Err(error) => {
                    self.page.connections().accept_errors.inc();
                    errors += 1;
                    if errors == 1 {
                        let why = error.to_string();
                        (self.log)(&EndpointEvent::NotAccepted { why });
                    }
                    sleep(wait).await;
                    wait = (2 * wait).min(LONGEST_WAIT);
                }
            }
        }
    }
}

/// Returns true if an error of accept(2) is about one connection, not about the listener.
fn is_of_client(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionRefused
    )
}

async fn serve(stream: TcpStream, limits: EndpointLimits, page: Arc<dyn Page>, is_loopback: bool) {
    let has_request = Notify::new();
    let service = service_fn(|request: Request<Incoming>| {
        has_request.notify_one();
        let response = respond(&request, &*page, is_loopback);
        async move { Ok::<_, Infallible>(response) }
    });
    let connection = http1::Builder::new()
        .keep_alive(false)
        .half_close(true)
        .max_buf_size(LONGEST_HEADER)
        .serve_connection(TokioIo::new(stream), service);
    // Counted before the connection is dropped: a client that sees its end finds it in the metrics.
    let deadline = async {
        match timeout(limits.header, has_request.notified()).await {
            Err(_) => count_closed(&*page, &ClosedLabels::NO_REQUEST),
            Ok(()) => {
                sleep(limits.response).await;
                count_closed(&*page, &ClosedLabels::NOT_READ);
            }
        }
    };
    tokio::select! {
        // A client that has sent garbage, or has gone, gets no answer.
        _ = connection => {}
        () = deadline => {}
    }
}

fn count_closed(page: &dyn Page, labels: &ClosedLabels) {
    page.connections().closed.get_or_create(labels).inc();
}

/// The weight of a media type in the Accept headers of a request (RFC 9110, 12.5.1); 0 if it is not named.
fn weight(headers: &HeaderMap, media_type: &str) -> f64 {
    let values = headers.get_all(ACCEPT).iter();
    let ranges = values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    let weight = |range: &str| {
        let mut parts = range.split(';').map(str::trim);
        if !parts.next()?.eq_ignore_ascii_case(media_type) {
            return None;
        }
        let given = parts.find_map(|part| part.strip_prefix("q=").or(part.strip_prefix("Q=")));
        Some(given.map_or(1.0, |weight| weight.trim().parse().unwrap_or(0.0)))
    };
    ranges.filter_map(weight).fold(0.0, f64::max)
}

/// Returns true if a client reads OpenMetrics and does not prefer the older text format.
fn wants_open_metrics(headers: &HeaderMap) -> bool {
    let open = weight(headers, "application/openmetrics-text");
    open > 0.0 && open >= weight(headers, "text/plain")
}

fn is_to_loopback(request: &Request<Incoming>) -> bool {
    let mut hosts = request.headers().get_all(HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else {
        return false;
    };
    // A whole URI in the request line replaces the header (RFC 9112, 3.2.2).
    Authority::try_from(host.as_bytes()).is_ok_and(|host| is_loopback_host(&host))
        && request.uri().authority().is_none_or(is_loopback_host)
}

fn is_loopback_host(authority: &Authority) -> bool {
    let host = authority.host();
    let address = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .unwrap_or(host);
    host.eq_ignore_ascii_case("localhost")
        || address
            .parse()
            .is_ok_and(|address: IpAddr| address.to_canonical().is_loopback())
}

fn respond(
    request: &Request<Incoming>,
    page: &dyn Page,
    is_loopback: bool,
) -> Response<Full<Bytes>> {
    let may = matches!(*request.method(), Method::GET | Method::HEAD);
    let (status, content_type, text) = match request.uri().path() {
        _ if is_loopback && !is_to_loopback(request) => (
            StatusCode::FORBIDDEN,
            TEXT_TYPE,
            "ask localhost or a loopback address; other hosts need another listen address\n"
                .to_owned(),
        ),
        "/metrics" if may && wants_open_metrics(request.headers()) => {
            (StatusCode::OK, OPEN_METRICS_TYPE, page.text())
        }
        "/metrics" if may => (StatusCode::OK, PLAIN_METRICS_TYPE, plain_text(&page.text())),
        "/metrics" => (
            StatusCode::METHOD_NOT_ALLOWED,
            TEXT_TYPE,
            "use GET\n".to_owned(),
        ),
        _ => (
            StatusCode::NOT_FOUND,
            TEXT_TYPE,
            "see /metrics\n".to_owned(),
        ),
    };
    let mut response = Response::new(Full::from(text));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    if status == StatusCode::OK {
        response
            .headers_mut()
            .insert(VARY, HeaderValue::from_static("accept"));
    }
    if status == StatusCode::METHOD_NOT_ALLOWED {
        let allowed = HeaderValue::from_static("GET, HEAD");
        response.headers_mut().insert(ALLOW, allowed);
    }
    response
}
