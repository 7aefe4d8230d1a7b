#[cfg(target_os = "linux")]
use std::net::{SocketAddr, ToSocketAddrs};
#[cfg(target_os = "linux")]
use std::sync::{Arc, Mutex, PoisonError};
#[cfg(target_os = "linux")]
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use silvan_core::{GivenTicks, Span};
use silvan_diagnose::dumps::{FileRole, Files, diagnose_files};
#[cfg(target_os = "linux")]
use silvan_diagnose::exporter::{Exporter, Swept};
use silvan_diagnose::map::SubnetMap;
use silvan_diagnose::report::Report;
#[cfg(target_os = "linux")]
use silvan_diagnose::survey::{Survey, SurveyError, Watch};
#[cfg(target_os = "linux")]
use silvan_diagnose::topology::LiveSubnet;
#[cfg(target_os = "linux")]
use silvan_subnet::client::{Client, Limits};
#[cfg(target_os = "linux")]
use silvan_subnet::endpoint::{Endpoint, EndpointEvent, EndpointLimits};
#[cfg(target_os = "linux")]
use silvan_subnet::log::{Format, Level, LineLog};
#[cfg(target_os = "linux")]
use silvan_subnet::transport::TransportError;
#[cfg(target_os = "linux")]
use silvan_subnet::umad::UmadTransport;

use crate::errors::diagnosis_error;

fn json(py: Python<'_>, report: &Report) -> PyResult<String> {
    serde_json::to_string(report).map_err(|error| diagnosis_error(py, &error.to_string(), None))
}

fn given_ticks(py: Python<'_>, texts: &[String]) -> PyResult<GivenTicks> {
    let given = GivenTicks::parse(texts.iter().map(String::as_str));
    given.map_err(|error| diagnosis_error(py, &format!("tick: {error}"), Some(error.hint())))
}

fn role(role: FileRole) -> &'static str {
    match role {
        FileRole::Topology => "topology",
        FileRole::Routes => "routes",
        FileRole::Before => "before",
        FileRole::After => "after",
    }
}

pub type SubnetTables = (String, Py<PyBytes>);

pub fn subnet_tables(py: Python<'_>, map: &SubnetMap) -> PyResult<SubnetTables> {
    let text = serde_json::to_string(map)
        .map_err(|error| diagnosis_error(py, &error.to_string(), None))?;
    Ok((text, PyBytes::new(py, &map.routes).unbind()))
}

/// Report, loads, subnet, and oddities by file; `DiagnosisError` has the file before the message.
#[pyfunction]
#[pyo3(signature = (*, topology, routes, before, after, interval_ps, ticks))]
#[expect(clippy::type_complexity, reason = "a tuple for Python")]
pub fn diagnose_dumps(
    py: Python<'_>,
    topology: &str,
    routes: Option<&str>,
    before: &str,
    after: &str,
    interval_ps: u64,
    ticks: Vec<String>,
) -> PyResult<(
    String,
    Py<PyBytes>,
    SubnetTables,
    Vec<(&'static str, String)>,
)> {
    let files = Files {
        topology,
        routes,
        before,
        after,
    };
    let (interval, given) = (Span::from_ps(interval_ps), given_ticks(py, &ticks)?);
    let done = py
        .detach(|| diagnose_files(files, interval, &given))
        .map_err(|(file, error)| {
            diagnosis_error(py, &format!("{}:{error}", role(file)), Some(&error.hint))
        })?;
    let odd = done.odd.into_iter().map(|(file, text)| (role(file), text));
    Ok((
        json(py, &done.report)?,
        PyBytes::new(py, &done.loads).unbind(),
        subnet_tables(py, &done.map)?,
        odd.collect(),
    ))
}

/// Report, loads, and the subnet if it has changed.
#[cfg(target_os = "linux")]
type Diagnosed = (String, Py<PyBytes>, Option<SubnetTables>);

/// Sweeps behind an adapter's port, each compared with the one before.
#[cfg(target_os = "linux")]
#[pyclass(frozen, module = "silvan._silvan")]
pub struct SubnetWatch(Mutex<Watching>);

#[cfg(target_os = "linux")]
struct Watching {
    client: Client<UmadTransport>,
    device: Option<String>,
    port: u8,
    is_lost: bool,
    watch: Watch,
    given_ticks: GivenTicks,
    survey: Option<Survey>,
    map: Option<(Arc<LiveSubnet>, SubnetMap)>,
    exporter: Option<(Arc<Exporter>, Endpoint)>,
}

#[cfg(target_os = "linux")]
impl Watching {
    fn act<R>(
        &mut self,
        act: impl Fn(&mut Self) -> Result<R, SurveyError>,
    ) -> Result<R, SurveyError> {
        let mut lost = None;
        if !self.is_lost {
            match act(self) {
                Err(SurveyError::Transport(error @ TransportError::Lost(_))) => {
                    self.lose();
                    lost = Some(error);
                }
                done => return done,
            }
        }
        match UmadTransport::open(self.device.as_deref(), self.port) {
            Ok(transport) => *self.client.transport() = transport,
            Err(error) => return Err(lost.unwrap_or(error).into()),
        }
        self.is_lost = false;
        let done = act(self);
        if let Err(SurveyError::Transport(TransportError::Lost(_))) = &done {
            self.lose();
        }
        done
    }

    fn lose(&mut self) {
        self.is_lost = true;
        self.survey = None;
        self.watch.invalidate();
    }

    /// Diagnoses the last sweep. Gives the report, the loads, and whether the subnet is laid out again.
    fn report(&mut self, time_scale: f64) -> Option<(Report, Vec<u8>, bool)> {
        let survey = self.survey.take()?;
        let client = &mut self.client;
        let (report, observation) = survey.diagnose(&self.given_ticks, time_scale, || client.now());
        let topology = &survey.topology;
        let exporter = self.exporter.as_ref().zip(survey.answers.as_ref());
        if let Some(((exporter, _), answers)) = exporter {
            exporter.update(Swept {
                fabric: &topology.fabric,
                answers,
                observation: &observation,
                report: &report,
                statistics: client.statistics(),
            });
        }
        let is_known = |map: &&(Arc<LiveSubnet>, SubnetMap)| Arc::ptr_eq(&map.0, topology);
        let is_new = self.map.as_ref().filter(is_known).is_none();
        if is_new {
            let tables = topology.known_tables();
            let mut map = SubnetMap::new(&topology.fabric, tables, &topology.capable);
            map.data_vls = topology.data_vls;
            self.map = Some((Arc::clone(topology), map));
        }
        let loads = self.map.as_ref().map(|(_, map)| map.loads(&observation));
        Some((report, loads.unwrap_or_default(), is_new))
    }
}

#[cfg(target_os = "linux")]
impl SubnetWatch {
    fn with<R: Send>(
        &self,
        py: Python<'_>,
        act: impl Fn(&mut Watching) -> Result<R, SurveyError> + Send,
    ) -> PyResult<R> {
        let done = py.detach(|| {
            let mut watching = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            watching.act(act)
        });
        done.map_err(|error| diagnosis_error(py, &error.to_string(), Some(error.hint())))
    }
}

#[cfg(target_os = "linux")]
#[pymethods]
impl SubnetWatch {
    #[new]
    #[pyo3(signature = (*, device, port, ticks, link_share))]
    fn new(
        py: Python<'_>,
        device: Option<&str>,
        port: u8,
        ticks: Vec<String>,
        link_share: f64,
    ) -> PyResult<Self> {
        let given_ticks = given_ticks(py, &ticks)?;
        let transport = py
            .detach(|| UmadTransport::open(device, port))
            .map_err(|error| diagnosis_error(py, &error.to_string(), Some(error.hint())))?;
        Ok(Self(Mutex::new(Watching {
            client: Client::new(transport, Limits::DEFAULT),
            device: device.map(str::to_owned),
            port,
            is_lost: false,
            watch: Watch::with_link_share(link_share),
            given_ticks,
            survey: None,
            map: None,
            exporter: None,
        })))
    }

    /// Serves metrics for the object's life, and reads all counters; port 0 means any free port.
    fn serve(&self, py: Python<'_>, listen: &str, interval_s: f64) -> PyResult<String> {
        let failed = |error: std::io::Error| {
            let what = format!("metrics cannot be served at {listen}: {error}");
            diagnosis_error(py, &what, Some("choose another address"))
        };
        let addresses: Vec<SocketAddr> = listen.to_socket_addrs().map_err(failed)?.collect();
        let interval = Duration::try_from_secs_f64(interval_s).unwrap_or(Duration::MAX / 4);
        let exporter = Arc::new(Exporter::new(interval));
        let mut lines = LineLog::new(std::io::stderr(), Format::Text, Level::Info);
        let log = move |event: &EndpointEvent| lines.write(event);
        let limits = EndpointLimits::default();
        let opened = Endpoint::open(&addresses, limits, exporter.clone(), Box::new(log));
        let endpoint = opened.map_err(failed)?;
        let address = endpoint.address().to_string();
        let mut watching = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        watching.watch.want_all_counters();
        watching.exporter = Some((exporter, endpoint));
        Ok(address)
    }

    fn note_failure(&self) {
        let watching = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((exporter, _)) = &watching.exporter {
            exporter.fail();
        }
    }

    fn prepare(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |watching| watching.watch.prepare(&mut watching.client))
    }

    fn sweep(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |watching| {
            watching.survey = watching.watch.sweep(&mut watching.client)?;
            Ok(())
        })
    }

    /// Report, loads, and the subnet if it has changed; `None` after the first sweep of a subnet.
    fn report(&self, py: Python<'_>, time_scale: f64) -> PyResult<Option<Diagnosed>> {
        let Some((report, loads, is_new)) =
            self.with(py, |watching| Ok(watching.report(time_scale)))?
        else {
            return Ok(None);
        };
        let watching = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let map = watching.map.as_ref().filter(|_| is_new);
        let map = map.map(|(_, map)| subnet_tables(py, map)).transpose()?;
        Ok(Some((
            json(py, &report)?,
            PyBytes::new(py, &loads).unbind(),
            map,
        )))
    }
}
