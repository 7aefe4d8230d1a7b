//! Fabrics and forwarding tables from the text of InfiniBand's tools, and back.
//!
//! | file | read by | written by |
//! |---|---|---|
//! | `ibnetdiscover`, also with `-g` and `-f`; ibdiagnet's `ibdiagnet2.ibnetdiscover` | [`topology`] | |
//! | `ibnetdiscover -p` | [`ports`] | |
//! | ibdiagnet's `ibdiagnet2.db_csv` | [`database`] | |
//! | net file of ibsim | [`topology`] | [`ibsim_net`] |
//! | `dump_lfts`, `dump_fts`, `opensm-lfts.dump`, `opensm.fdbs` | [`routes`] | |
//! | `opensm-sl2vl.dump`, in one file with these | [`routes`] | [`sl_to_vl_dump`] |
//! | OpenSM's `--root_guid_file`, `--cn_guid_file` | [`root_switches`], [`compute_hosts`] | |
//!
//! Unclear lines are an [`ImportError`] with a hint, contradictions an [`ImportWarning`]:
//!
//! - Cabled ports of an adapter or router become hosts, `NAME/P1`, `NAME/P2`, of one node GUID.
//! - Nodes of one name get their GUID, or their id in the file: `NAME (0x0002c903...)`.
//! - A cable of one end counts unless the other lists another; the lower width and speed hold.
//! - A switch's cables to itself, tools' messages, prompts and terminal recorders are left out.
//! - GUIDs, LIDs and ports stay; with LMC above 0 only base LIDs count.
//!
//! ```
//! let text = r#"
//! Switch 36 "S-0002c90200423e70" # "leaf" base port 0 lid 6 lmc 0
//! [1] "H-0000000000100003"[1](100004) # "node-1" lid 4 4xFDR
//!
//! Ca 1 "H-0000000000100003" # "node-1"
//! [1](100004) "S-0002c90200423e70"[1] # lid 4 lmc 0 "leaf" lid 6 4xFDR
//! "#;
//! let import = silvan_fabric::import::topology(text)?;
//! assert_eq!(import.nodes[0].name, "leaf");
//! assert_eq!(import.nodes[1].lid.map(|lid| lid.as_u16()), Some(4));
//! # Ok::<(), silvan_fabric::import::ImportError>(())
//! ```

mod assemble;
mod capture;
mod error;
mod export;
mod guids;
mod ibdiagnet;
mod levels;
mod lfts;
mod line;
mod model;
mod ports;
mod sl_to_vl;
mod topology;

pub use error::{ImportError, ImportWarning};
pub use export::ibsim_net;
pub use guids::{compute_hosts, root_switches};
pub use ibdiagnet::{DatabaseSection, ImportedDatabase, database, database_number};
pub use lfts::{ImportedRoutes, routes};
pub use model::{ImportedCable, ImportedFabric, ImportedNode, NodeKind};
pub use ports::ports;
pub use sl_to_vl::sl_to_vl_dump;
pub use topology::topology;
