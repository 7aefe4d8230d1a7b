//! PortSamplesControl.Tick, which says what a tick of PortXmitWait lasts.

use std::collections::BTreeMap;

use silvan_core::{Lid, PortNumber};
use silvan_mad::performance::{PerformanceAttribute, PortSamplesControl};
use silvan_mad::{Body, Method};

use crate::client::{Client, Failure, Query};
use crate::transport::{Transport, TransportError};

/// A port whose Tick is read.
#[derive(Clone, Copy, Debug)]
pub struct TickQuery {
    /// Number that represents its node at the client.
    pub node: u32,
    /// LID of its node.
    pub lid: Lid,
    /// Number of the port on the node.
    pub port: PortNumber,
}

/// Reads the Tick of one port per key: a node with width and speed, as ports of a chip differ in nothing else.
pub fn read_ticks<T: Transport, K: Ord + Copy>(
    client: &mut Client<T>,
    ports: impl IntoIterator<Item = (K, TickQuery)>,
) -> Result<BTreeMap<K, Result<u8, Failure>>, TransportError> {
    let mut first: BTreeMap<K, TickQuery> = BTreeMap::new();
    for (key, query) in ports {
        first.entry(key).or_insert(query);
    }
    let queries: Vec<Query> = first
        .values()
        .map(|query| {
            let control = PortSamplesControl {
                port_select: query.port,
                ..PortSamplesControl::default()
            };
            let body = Body::Performance(PerformanceAttribute::from(control));
            Query::new(query.node, query.lid, Method::GET, body, 0)
        })
        .collect();
    let answers = client.ask(&queries)?;
    let codes = first
        .into_iter()
        .zip(answers)
        .map(|((key, query), answer)| {
            let code = answer.and_then(|answer| {
                let control = PortSamplesControl::parse(&answer.data());
                match control.port_select == query.port {
                    true => Ok(control.tick),
                    false => Err(Failure::Unanswered),
                }
            });
            (key, code)
        });
    Ok(codes.collect())
}
