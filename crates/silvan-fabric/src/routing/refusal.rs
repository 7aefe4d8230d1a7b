use silvan_core::document::{KeyPath, Refusal};

use super::RoutingError;

impl From<&RoutingError> for Refusal {
    fn from(error: &RoutingError) -> Self {
        use RoutingError as E;
        let table = |switch: &str| KeyPath::from("tables").key(switch);
        let did_you_mean = |nearest: &str| format!("did you mean {nearest:?}?");
        let (key, hint): (KeyPath, String) = match error {
            E::NotAFatTree { .. } | E::TooManyLanes { .. } => {
                ("routing".into(), "use min-hop instead".into())
            }
            E::NotAGrid { .. } => (
                "routing".into(),
                "use a torus of at most four dimensions".into(),
            ),
            E::Refused { key, hint, .. } => ((*key).into(), hint.clone()),
            E::Disconnected { from, .. } => (
                KeyPath::ROOT,
                format!("add a [[fabric.cable]] from {from:?} towards it"),
            ),
            E::UnknownSwitch { name, nearest } => (
                table(name),
                nearest
                    .as_deref()
                    .map_or_else(|| "a table is named after its switch".into(), did_you_mean),
            ),
            E::DuplicateTable { switch } => (table(switch), "merge them into one".into()),
            E::UnknownDestination {
                switch,
                destination,
                nearest,
            } => (
                table(switch).key(destination),
                nearest
                    .as_deref()
                    .map_or_else(|| "name a host of the fabric".into(), did_you_mean),
            ),
            E::DuplicateEntry {
                switch,
                destination,
            } => (table(switch).key(destination), "keep one of them".into()),
            E::DeadPort {
                switch,
                destination,
                ..
            } => (
                table(switch).key(destination),
                "name a port that a [[fabric.cable]] is plugged into".into(),
            ),
        };
        Self::new(key, error.to_string(), hint)
    }
}
