//! Open `rdma_cm` files: their commands, and a stream to each with a byte for each event, which programs poll.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType};
use silvan_core::NodeId;
use silvan_verbs::{CmFile, Connections};

use super::RdmaPrograms;
use crate::subnet::Subnet;
use crate::verbs::port;

#[derive(Debug)]
struct Stream {
    socket: OwnedFd,
    unsent: usize,
}

#[derive(Debug, Default)]
pub(super) struct Connecting {
    connections: Connections,
    streams: BTreeMap<CmFile, Stream>,
}

impl Stream {
    fn send(&mut self) {
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        while self.unsent > 0 && rustix::net::send(&self.socket, &[1], flags) == Ok(1) {
            self.unsent -= 1;
        }
    }
}

impl Connecting {
    fn notify(&mut self) {
        for file in self.connections.take_ready() {
            if let Some(stream) = self.streams.get_mut(&file) {
                stream.unsent += 1;
            }
        }
        for stream in self.streams.values_mut() {
            stream.send();
        }
    }
}

impl RdmaPrograms {
    pub fn open_connections(
        &mut self,
        subnet: &Subnet,
        node: NodeId,
    ) -> Result<(CmFile, OwnedFd), Errno> {
        let host = subnet.fabric.nodes[node].as_host().ok_or(Errno::NODEV)?;
        let device = self.device(subnet, node);
        let (socket, program) = rustix::net::socketpair(
            AddressFamily::UNIX,
            SocketType::STREAM,
            SocketFlags::CLOEXEC,
            None,
        )?;
        let host = u32::try_from(host.index()).map_err(|_| Errno::NODEV)?;
        let file = self.connecting.connections.open(device, host);
        let stream = Stream { socket, unsent: 0 };
        self.connecting.streams.insert(file, stream);
        Ok((file, program))
    }

    pub fn connection_command(&mut self, file: CmFile, record: &[u8], subnet: &Subnet) -> Vec<u8> {
        for (&node, &device) in &self.devices {
            self.verbs.set_port(device, port(subnet, node));
        }
        let reply = self
            .connecting
            .connections
            .execute(file, record, &self.verbs);
        self.connecting.notify();
        let mut answer = reply.errno.to_ne_bytes().to_vec();
        answer.extend([0; 4]);
        answer.extend(reply.response);
        answer
    }

    pub fn reject_old_requests(&mut self) {
        self.connecting.connections.reject_old_requests();
        self.connecting.notify();
    }

    pub fn close_connections(&mut self, file: CmFile) {
        self.connecting.connections.close(file);
        self.connecting.streams.remove(&file);
        self.connecting.notify();
    }
}
