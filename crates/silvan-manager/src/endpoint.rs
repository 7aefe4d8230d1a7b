//! Serves the metrics over HTTP.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;

use tiny_http::{Header, Method, Response, Server};

use crate::metrics::Metrics;

const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// An endpoint that serves until it is dropped.
pub struct Endpoint {
    server: Arc<Server>,
    thread: Option<JoinHandle<()>>,
    address: SocketAddr,
}

impl Endpoint {
    /// Listens at an address; port 0 stands for any that is free.
    ///
    /// # Errors
    ///
    /// If the address is in use or not of this machine.
    pub fn open(address: SocketAddr, metrics: Arc<Metrics>) -> io::Result<Self> {
        let server = Server::http(address).map_err(io::Error::other)?;
        let address = server.server_addr().to_ip().unwrap_or(address);
        let server = Arc::new(server);
        let serving = Arc::clone(&server);
        let thread = std::thread::Builder::new()
            .name("metrics".into())
            .spawn(move || {
                for request in serving.incoming_requests() {
                    let is_get = *request.method() == Method::Get;
                    let response = match request.url() {
                        "/metrics" if is_get => Response::from_string(metrics.text()),
                        "/metrics" => Response::from_string("use GET\n").with_status_code(405),
                        _ => Response::from_string("see /metrics\n").with_status_code(404),
                    };
                    let header = Header::from_bytes("Content-Type", CONTENT_TYPE);
                    let response = match header {
                        Ok(header) => response.with_header(header),
                        Err(()) => response,
                    };
                    // Whoever has asked may have gone.
                    let _ = request.respond(response);
                }
            })?;
        Ok(Self {
            server,
            thread: Some(thread),
            address,
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.server.unblock();
        if let Some(thread) = self.thread.take() {
            // A panic in there has been reported; it changes nothing here.
            let _ = thread.join();
        }
    }
}
