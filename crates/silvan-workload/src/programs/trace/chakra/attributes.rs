use super::super::MOST_BYTES;
use super::NodeWork;
use crate::programs::collective::Operation;

pub(super) type Given = Result<u64, String>;

#[derive(Debug, Default)]
pub(super) struct Attributes {
    is_cpu_op: Option<Given>,
    comm_type: Option<Given>,
    comm_size: Option<Given>,
    comm_src: Option<Given>,
    comm_dst: Option<Given>,
    comm_tag: Option<Given>,
    num_ops: Option<Given>,
    root: Option<Given>,
    group: Option<String>,
    /// All dimensions take part; an error is the text in place of a list.
    dimensions: Option<Result<bool, String>>,
}

pub(super) fn number(given: Option<&Given>, name: &str) -> Result<Option<u64>, String> {
    match given {
        None => Ok(None),
        Some(Ok(number)) => Ok(Some(*number)),
        Some(Err(text)) => Err(format!(
            "{name} is {text}: whole numbers from 0 are supported"
        )),
    }
}

const MEMORY_LOAD: u64 = 2;
const SEND: u64 = 5;
const RECEIVE: u64 = 6;
const COLLECTIVE: u64 = 7;
const LAST_TYPE: u64 = 10;

fn fill<T: PartialEq>(slot: &mut Option<T>, value: T, name: &str) -> Result<(), String> {
    match slot {
        Some(other) if *other != value => Err(format!("{name} is given twice, with two values")),
        _ => {
            *slot = Some(value);
            Ok(())
        }
    }
}

impl Attributes {
    pub fn set(&mut self, name: &str, given: Given) -> Result<(), String> {
        let slot = match name {
            "is_cpu_op" => &mut self.is_cpu_op,
            "comm_type" => &mut self.comm_type,
            "comm_size" => &mut self.comm_size,
            "comm_src" => &mut self.comm_src,
            "comm_dst" => &mut self.comm_dst,
            "comm_tag" => &mut self.comm_tag,
            "num_ops" => &mut self.num_ops,
            "root_rank" | "comm_root" => &mut self.root,
            _ => return Ok(()),
        };
        fill(slot, given, name)
    }

    pub fn set_group(&mut self, name: &str, group: Option<String>) -> Result<(), String> {
        group.map_or(Ok(()), |group| fill(&mut self.group, group, name))
    }

    pub fn set_dimensions(&mut self, all: Result<bool, String>) -> Result<(), String> {
        fill(&mut self.dimensions, all, "involved_dim")
    }

    pub fn work(self, kind: u64, micros: u64, rank: usize) -> Result<NodeWork, String> {
        let is_host = match self.is_cpu_op {
            None | Some(Ok(0)) => false,
            Some(Ok(1)) => true,
            Some(Ok(other)) => return Err(is_no_flag(&other.to_string())),
            Some(Err(text)) => return Err(is_no_flag(&text)),
        };
        let is_message = (SEND..=COLLECTIVE).contains(&kind) && !is_host;
        if !is_message {
            return match kind {
                1 => Ok(NodeWork::Metadata),
                MEMORY_LOAD..=LAST_TYPE => Ok(NodeWork::Compute {
                    micros,
                    ops: number(self.num_ops.as_ref(), "num_ops")?.unwrap_or(0),
                    host: kind != 4 || is_host,
                }),
                _ => Err(format!(
                    "{kind} is no type of node: 1 to {LAST_TYPE} are known"
                )),
            };
        }
        let comm_type = number(self.comm_type.as_ref(), "comm_type")?;
        let bytes = match number(self.comm_size.as_ref(), "comm_size")? {
            Some(bytes) if bytes <= MOST_BYTES => bytes,
            Some(bytes) => {
                return Err(format!("{bytes} bytes: at most {MOST_BYTES} are supported"));
            }
            None if kind == COLLECTIVE && comm_type == Some(9) => 0,
            None => return Err("it has no comm_size".to_owned()),
        };
        let short = |given: Option<&Given>, name: &str| {
            let value = number(given, name)?.ok_or_else(|| match kind {
                // ASTRA-sim's feeder reads uninitialised memory instead.
                SEND | RECEIVE => format!(
                    "it has no {name}: Chakra's PyTorch converter leaves out the other ends of messages"
                ),
                _ => format!("it has no {name}"),
            })?;
            u32::try_from(value).map_err(|_| format!("{name} is {value}: it has 32 bits"))
        };
        let own = |given: Option<&Given>, name: &str, what: &str| match number(given, name)? {
            Some(other) if other != rank as u64 => Err(format!(
                "{name} is {other}, but this is a {what} of rank {rank}"
            )),
            _ => Ok(()),
        };
        let zero = Ok(0);
        let tag = || short(self.comm_tag.as_ref().or(Some(&zero)), "comm_tag");
        match kind {
            SEND => {
                own(self.comm_src.as_ref(), "comm_src", "send")?;
                Ok(NodeWork::Send {
                    to: short(self.comm_dst.as_ref(), "comm_dst")?,
                    bytes,
                    tag: tag()?,
                })
            }
            RECEIVE => {
                own(self.comm_dst.as_ref(), "comm_dst", "receive")?;
                Ok(NodeWork::Receive {
                    from: short(self.comm_src.as_ref(), "comm_src")?,
                    bytes,
                    tag: tag()?,
                })
            }
            _ => {
                match self.dimensions {
                    None | Some(Ok(true)) => {}
                    Some(Ok(false)) => {
                        let message = "involved_dim leaves out dimensions of a network; groups of ranks are read";
                        return Err(message.to_owned());
                    }
                    Some(Err(text)) => {
                        return Err(format!("involved_dim is {text}, no list of true and false"));
                    }
                }
                let operation = operation(comm_type)?;
                let root = match operation.has_root() {
                    true => self.root.as_ref(),
                    false => None,
                };
                Ok(NodeWork::Collective {
                    operation,
                    bytes,
                    group: self.group.clone(),
                    root: root.map(|_| short(root, "the root")).transpose()?,
                })
            }
        }
    }
}

fn is_no_flag(text: &str) -> String {
    format!("is_cpu_op is {text}, neither true nor false")
}

fn operation(comm_type: Option<u64>) -> Result<Operation, String> {
    Ok(match comm_type {
        Some(0) => Operation::Allreduce,
        Some(1) => Operation::Reduce,
        Some(2) => Operation::Allgather,
        Some(3) => Operation::Incast,
        Some(4) => Operation::Scatter,
        Some(5) => Operation::Broadcast,
        Some(6) => Operation::Alltoall,
        Some(7 | 8) => Operation::ReduceScatter,
        Some(9) => Operation::Barrier,
        Some(other) => return Err(format!("comm_type is {other}: 0 to 9 are known")),
        None => return Err("it has no comm_type".to_owned()),
    })
}
