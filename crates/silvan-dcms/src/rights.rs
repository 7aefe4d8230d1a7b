//! Rights to change ports.

use std::str::FromStr;

use silvan_core::Guid;

/// A switch or a port of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    switch: Named,
    port: Option<u8>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Named {
    Any,
    Guid(Guid),
    Name(String),
}

/// `*`, `switch` or `switch:port`, by GUID (`0x...`) or NodeDescription; a last numeric part is the port.
impl FromStr for Rule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let numbered = text
            .rsplit_once(':')
            .and_then(|(switch, port)| Some((switch, port.parse::<u16>().ok()?)));
        let (switch, port) = match numbered {
            Some((switch, port @ 1..=254)) => (switch, Some(port as u8)),
            Some((_, port)) => return Err(format!("{text:?}: no switch has a port {port}")),
            None => (text, None),
        };
        let switch = match switch {
            "" => return Err(format!("{text:?} names no switch")),
            "*" => Named::Any,
            guid if guid.starts_with("0x") => {
                let guid = guid.parse();
                Named::Guid(guid.map_err(|error: silvan_core::ParseWireIdError| error.to_string())?)
            }
            name => Named::Name(name.to_owned()),
        };
        Ok(Self { switch, port })
    }
}

impl Rule {
    fn covers(&self, guid: Guid, name: &str, port: u8) -> bool {
        let switch = match &self.switch {
            Named::Any => true,
            Named::Guid(own) => *own == guid,
            Named::Name(own) => own == name,
        };
        switch && self.port.is_none_or(|own| own == port)
    }
}

/// Allowed and denied ports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rights {
    allow: Vec<Rule>,
    deny: Vec<Rule>,
}

impl Rights {
    /// Ports that a rule of `allow` covers and none of `deny`.
    pub fn new(allow: Vec<Rule>, deny: Vec<Rule>) -> Self {
        Self { allow, deny }
    }

    /// Returns true if a port may be changed.
    pub fn covers(&self, switch: Guid, name: &str, port: u8) -> bool {
        let covers = |rules: &[Rule]| rules.iter().any(|rule| rule.covers(switch, name, port));
        covers(&self.allow) && !covers(&self.deny)
    }
}
