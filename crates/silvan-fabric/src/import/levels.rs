//! Service levels of paths, behind the routes of a forwarding table: `... sl 1 3:0 4:2` is 1 from the switch's hosts, 0
//! from the one at port 3, 2 from the one at port 4.

use silvan_core::{HostId, PortNumber, Sl, SwitchId};

use crate::Fabric;
use crate::import::ImportError;

/// Levels of all hosts of the switch, then of single hosts. Names inside the parentheses may look like a level.
pub(crate) fn path_service_levels(
    line: &str,
    number: usize,
    fabric: &Fabric,
    switch: SwitchId,
) -> Result<Vec<(Option<HostId>, Sl)>, ImportError> {
    let behind = line.split_once(" : (").and_then(|(_, rest)| {
        let (_, behind) = rest.rsplit_once("')")?;
        behind.trim_start().strip_prefix("sl")
    });
    let Some(words) = behind.map(str::trim) else {
        return Ok(Vec::new());
    };
    let level = |word: &str| {
        let level = word.parse().ok().and_then(|level| Sl::try_new(level).ok());
        level.ok_or_else(|| {
            ImportError::new(
                number,
                format!("{word:?} is not a service level"),
                "they are 0 to 15; is the file cut off?",
            )
        })
    };
    let (first, others) = words.split_once(' ').unwrap_or((words, ""));
    let mut levels = vec![(None, level(first)?)];
    for word in others.split_whitespace() {
        let (port, own) = word.split_once(':').ok_or_else(|| {
            ImportError::new(
                number,
                format!("{word:?} is not a port and a service level"),
                "write e.g. 3:1 for level 1 from the host at port 3",
            )
        })?;
        let node = fabric.switch(switch);
        let peer = port.parse().ok().and_then(|port| {
            let port = node.port(PortNumber::new(port))?;
            fabric.nodes[fabric.ports[fabric.ports[port].peer?].node].as_host()
        });
        let host = peer.ok_or_else(|| {
            ImportError::new(
                number,
                format!("port {port:?} of {:?} leads to no host", node.name),
                "take tables and fabric at the same time",
            )
        })?;
        levels.push((Some(host), level(own)?));
    }
    Ok(levels)
}
