//! RDMA netlink: devices, ports and device files, as `rdma link` and rdma-core query them.
//!
//! The program's socket is one of netlink for user programs, so that binding, options and receiving are the kernel's. A request
//! that the program sends to the kernel is answered by this library, from a socket of its own.

use std::ffi::{OsString, c_int, c_void};
use std::fs;
use std::os::unix::ffi::OsStringExt;

use libc::ssize_t;

use crate::{fabric, fail, paths, real};

const HEADER: usize = 16;
const NLDEV: u16 = 5;
const GET: u16 = 1;
const PORT_GET: u16 = 5;
const SYS_GET: u16 = 6;
const GET_CHARDEV: u16 = 15;
/// Attributes of `rdma_netlink.h`, RDMA_NLDEV_ATTR_...
mod attribute {
    pub const DEV_INDEX: u16 = 1;
    pub const DEV_NAME: u16 = 2;
    pub const PORT_INDEX: u16 = 3;
    pub const CAP_FLAGS: u16 = 4;
    pub const FW_VERSION: u16 = 5;
    pub const NODE_GUID: u16 = 6;
    pub const SYS_IMAGE_GUID: u16 = 7;
    pub const SUBNET_PREFIX: u16 = 8;
    pub const LID: u16 = 9;
    pub const SM_LID: u16 = 10;
    pub const LMC: u16 = 11;
    pub const PORT_STATE: u16 = 12;
    pub const PORT_PHYS_STATE: u16 = 13;
    pub const DEV_NODE_TYPE: u16 = 14;
    pub const NETNS_MODE: u16 = 66;
    pub const DEV_PROTOCOL: u16 = 67;
    pub const CHARDEV_TYPE: u16 = 69;
    pub const CHARDEV_NAME: u16 = 70;
    pub const CHARDEV_ABI: u16 = 71;
    pub const CHARDEV: u16 = 72;
}
const LONGEST_REQUEST: usize = 4096;
const ERROR: u16 = libc::NLMSG_ERROR as u16;
const DONE: u16 = libc::NLMSG_DONE as u16;
const MULTI: u16 = libc::NLM_F_MULTI as u16;
const ACK: u16 = libc::NLM_F_ACK as u16;
const DUMP: u16 = libc::NLM_F_DUMP as u16;
/// One network namespace for all.
const SHARED: u8 = 1;

struct Request<'a> {
    kind: u16,
    flags: u16,
    sequence: u32,
    port: u32,
    body: &'a [u8],
}

struct Device {
    index: u32,
    name: Vec<u8>,
}

/// Opens the socket of a program, if the kernel has such netlink.
pub(crate) fn open(kind: c_int) -> c_int {
    // SAFETY: numbers only.
    let fd = unsafe { (real::socket())(libc::AF_NETLINK, kind, libc::NETLINK_USERSOCK) };
    if fd < 0 {
        return fail(libc::EPROTONOSUPPORT);
    }
    fd
}

/// Answers a request of the program.
///
/// # Safety
/// The parts are valid memory.
pub(crate) unsafe fn send(fd: c_int, parts: &[libc::iovec]) -> ssize_t {
    let mut bytes = Vec::new();
    for part in parts {
        if bytes.len() + part.iov_len > LONGEST_REQUEST {
            return fail::<i8>(libc::EMSGSIZE).into();
        }
        if part.iov_len > 0 {
            // SAFETY: as above.
            let part = unsafe { std::slice::from_raw_parts(part.iov_base.cast(), part.iov_len) };
            bytes.extend::<&[u8]>(part);
        }
    }
    let Some(request) = Request::parse(&bytes) else {
        return fail::<i8>(libc::EINVAL).into();
    };
    match answer(fd, &request.answers()) {
        Ok(()) => bytes.len() as ssize_t,
        Err(error) => fail::<i8>(error).into(),
    }
}

fn answer(fd: c_int, records: &[Vec<u8>]) -> Result<(), c_int> {
    // SAFETY: all bits zero are a valid address, the lengths are those of the buffers, and the descriptor is this function's.
    unsafe {
        let mut to: libc::sockaddr_nl = std::mem::zeroed();
        let mut length = size_of::<libc::sockaddr_nl>() as libc::socklen_t;
        if libc::getsockname(fd, (&raw mut to).cast(), &raw mut length) != 0 {
            return Err(libc::EBADF);
        }
        let flags = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
        let own = (real::socket())(libc::AF_NETLINK, flags, libc::NETLINK_USERSOCK);
        if own < 0 {
            return Err(libc::ENOBUFS);
        }
        let mut done = Ok(());
        for record in records {
            let mut part = libc::iovec {
                iov_base: record.as_ptr().cast_mut().cast::<c_void>(),
                iov_len: record.len(),
            };
            let mut header: libc::msghdr = std::mem::zeroed();
            header.msg_name = (&raw mut to).cast();
            header.msg_namelen = length;
            header.msg_iov = &raw mut part;
            header.msg_iovlen = 1;
            if (real::sendmsg())(own, &raw const header, 0) < 0 {
                done = Err(libc::ENOBUFS);
            }
        }
        fabric::close(own);
        done
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at + 4)?;
    bytes.try_into().ok().map(u32::from_ne_bytes)
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..at + 2)?;
    bytes.try_into().ok().map(u16::from_ne_bytes)
}

fn put(record: &mut Vec<u8>, kind: u16, value: &[u8]) {
    record.extend((4 + value.len() as u16).to_ne_bytes());
    record.extend(kind.to_ne_bytes());
    record.extend(value);
    record.resize(record.len().next_multiple_of(4), 0);
}

fn put_text(record: &mut Vec<u8>, kind: u16, value: &[u8]) {
    put(record, kind, &[value, b"\0"].concat());
}

impl<'a> Request<'a> {
    fn parse(bytes: &'a [u8]) -> Option<Self> {
        let length = word(bytes, 0)? as usize;
        Some(Self {
            kind: half(bytes, 4)?,
            flags: half(bytes, 6)?,
            sequence: word(bytes, 8)?,
            port: word(bytes, 12)?,
            body: bytes.get(HEADER..length)?,
        })
    }

    fn attribute(&self, wanted: u16) -> Option<&'a [u8]> {
        let mut rest = self.body;
        loop {
            let length = usize::from(half(rest, 0)?);
            let value = rest.get(4..length)?;
            if half(rest, 2)? == wanted {
                return Some(value);
            }
            rest = rest.get(length.next_multiple_of(4)..)?;
        }
    }

    fn record(&self, kind: u16, flags: u16, body: &[u8]) -> Vec<u8> {
        let mut record = ((HEADER + body.len()) as u32).to_ne_bytes().to_vec();
        record.extend(kind.to_ne_bytes());
        record.extend(flags.to_ne_bytes());
        record.extend(self.sequence.to_ne_bytes());
        record.extend(self.port.to_ne_bytes());
        record.extend(body);
        record
    }

    fn answers(&self) -> Vec<Vec<u8>> {
        let is_dump = self.flags & DUMP == DUMP;
        match self.bodies(is_dump) {
            Ok(bodies) if is_dump => {
                let all = bodies
                    .iter()
                    .map(|body| self.record(self.kind, MULTI, body));
                let done = self.record(DONE, MULTI, &[0; 4]);
                all.chain([done]).collect()
            }
            Ok(bodies) => {
                let all = bodies.iter().map(|body| self.record(self.kind, 0, body));
                let is_acknowledged = self.flags & ACK != 0;
                all.chain(is_acknowledged.then(|| self.outcome(0)))
                    .collect()
            }
            Err(error) => vec![self.outcome(error)],
        }
    }

    /// An error, or an acknowledgement, with the header of the request.
    fn outcome(&self, error: c_int) -> Vec<u8> {
        let mut body = (-error).to_ne_bytes().to_vec();
        body.extend(self.record(self.kind, self.flags, self.body));
        self.record(ERROR, 0, &body)
    }

    fn bodies(&self, is_dump: bool) -> Result<Vec<Vec<u8>>, c_int> {
        let (client, command) = (self.kind >> 10, self.kind & 0x3ff);
        if client != NLDEV {
            return Err(libc::EINVAL);
        }
        let index = self
            .attribute(attribute::DEV_INDEX)
            .and_then(|value| word(value, 0));
        let chosen = || {
            let mut all = devices().into_iter();
            all.find(|device| Some(device.index) == index)
                .ok_or(libc::ENODEV)
        };
        match command {
            GET if is_dump => Ok(devices().iter().filter_map(Device::describe).collect()),
            GET => one(chosen()?.describe()),
            PORT_GET => one(chosen()?.describe_port()),
            SYS_GET => {
                let mut body = Vec::new();
                put(&mut body, attribute::NETNS_MODE, &[SHARED]);
                Ok(vec![body])
            }
            GET_CHARDEV => {
                let kind = self.attribute(attribute::CHARDEV_TYPE).unwrap_or_default();
                if kind.strip_suffix(b"\0").unwrap_or(kind) != b"uverbs" {
                    return Err(libc::EOPNOTSUPP);
                }
                one(chosen()?.file())
            }
            _ => Err(libc::EOPNOTSUPP),
        }
    }
}

/// The only answer; a switch has no file of a device.
fn one(answer: Option<Vec<u8>>) -> Result<Vec<Vec<u8>>, i32> {
    answer.map(|body| vec![body]).ok_or(libc::ENODEV)
}

fn devices() -> Vec<Device> {
    let Some(folder) = paths::folder(b"/sys/class/infiniband") else {
        return Vec::new();
    };
    let entries = fs::read_dir(OsString::from_vec(folder.into_bytes()))
        .into_iter()
        .flatten()
        .flatten();
    let mut names: Vec<Vec<u8>> = entries.map(|entry| entry.file_name().into_vec()).collect();
    names.sort();
    let numbered = names.into_iter().zip(0..);
    numbered
        .map(|(name, index)| Device { index, name })
        .collect()
}

/// A line of sysfs, without spaces around it.
fn line(name: &[u8]) -> Option<String> {
    let text = String::from_utf8(fabric::text(name).ok()?).ok()?;
    Some(text.trim().to_owned())
}

/// The number that a line has before its colon, if it has one.
fn number(text: &str) -> Option<u64> {
    let first = text.split(':').next()?.trim();
    match first.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => first.parse().ok(),
    }
}

fn guid(text: &str) -> Option<u64> {
    u64::from_str_radix(&text.replace(':', ""), 16).ok()
}

impl Device {
    fn line(&self, file: &str) -> Option<String> {
        line(&[b"infiniband/", &self.name[..], b"/", file.as_bytes()].concat())
    }

    fn start(&self, port: u32) -> Vec<u8> {
        let mut body = Vec::new();
        put(&mut body, attribute::DEV_INDEX, &self.index.to_ne_bytes());
        put_text(&mut body, attribute::DEV_NAME, &self.name);
        put(&mut body, attribute::PORT_INDEX, &port.to_ne_bytes());
        body
    }

    fn describe(&self) -> Option<Vec<u8>> {
        let mut body = self.start(1);
        put(&mut body, attribute::CAP_FLAGS, &0_u64.to_ne_bytes());
        put_text(
            &mut body,
            attribute::FW_VERSION,
            self.line("fw_ver")?.as_bytes(),
        );
        let node = guid(&self.line("node_guid")?)?;
        put(&mut body, attribute::NODE_GUID, &node.to_ne_bytes());
        let system = guid(&self.line("sys_image_guid")?)?;
        put(&mut body, attribute::SYS_IMAGE_GUID, &system.to_ne_bytes());
        let kind = number(&self.line("node_type")?)?;
        put(&mut body, attribute::DEV_NODE_TYPE, &[kind as u8]);
        put_text(&mut body, attribute::DEV_PROTOCOL, b"ib");
        Some(body)
    }

    fn describe_port(&self) -> Option<Vec<u8>> {
        let mut body = self.start(1);
        let value = |file: &str| number(&self.line(&format!("ports/1/{file}"))?);
        let prefix = self.line("ports/1/gids/0")?;
        let prefix = guid(&prefix.split(':').take(4).collect::<String>())?;
        put(
            &mut body,
            attribute::CAP_FLAGS,
            &value("cap_mask")?.to_ne_bytes(),
        );
        put(&mut body, attribute::SUBNET_PREFIX, &prefix.to_ne_bytes());
        for (kind, file) in [(attribute::LID, "lid"), (attribute::SM_LID, "sm_lid")] {
            put(&mut body, kind, &(value(file)? as u32).to_ne_bytes());
        }
        for (kind, file) in [
            (attribute::LMC, "lid_mask_count"),
            (attribute::PORT_STATE, "state"),
            (attribute::PORT_PHYS_STATE, "phys_state"),
        ] {
            put(&mut body, kind, &[value(file)? as u8]);
        }
        Some(body)
    }

    /// The `uverbs` file of the device.
    fn file(&self) -> Option<Vec<u8>> {
        let name = format!("uverbs{}", self.index);
        let value = |file: &str| line(format!("infiniband_verbs/{name}/{file}").as_bytes());
        let (major, minor) = value("dev")?.split_once(':').and_then(|(major, minor)| {
            Some((major.parse::<u64>().ok()?, minor.parse::<u64>().ok()?))
        })?;
        let mut body = Vec::new();
        let encoded = minor & 0xff | major << 8 | (minor & !0xff) << 12;
        put(&mut body, attribute::CHARDEV, &encoded.to_ne_bytes());
        let version = number(&value("abi_version")?)?;
        put(&mut body, attribute::CHARDEV_ABI, &version.to_ne_bytes());
        put_text(&mut body, attribute::CHARDEV_NAME, name.as_bytes());
        Some(body)
    }
}
