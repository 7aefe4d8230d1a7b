//! The connection manager, command by command as librdmacm writes them.

use proptest::prelude::*;
use silvan_verbs::abi::Layout;
use silvan_verbs::abi::connections::*;
use silvan_verbs::{CmFile, Connections};

use crate::world::*;

const EAGAIN: i32 = 11;
const EINVAL: i32 = 22;
const EADDRINUSE: i32 = 98;
const ENOSYS: i32 = 38;
const TCP: u16 = 0x0106;
const UDP: u16 = 0x0111;

const ADDRESS_RESOLVED: u32 = 0;
const ROUTE_RESOLVED: u32 = 2;
const CONNECT_REQUEST: u32 = 4;
const CONNECT_RESPONSE: u32 = 5;
const REJECTED: u32 = 8;
const ESTABLISHED: u32 = 9;
const DISCONNECTED: u32 = 10;

struct Managers {
    world: World,
    connections: Connections,
}

#[derive(Debug)]
struct Event {
    uid: u64,
    id: u32,
    kind: u32,
    status: u32,
    parameters: Vec<u8>,
}

fn address(last: u8, port: u16) -> [u8; 28] {
    let mut bytes = [0; 28];
    bytes[..2].copy_from_slice(&2_u16.to_ne_bytes());
    bytes[2..4].copy_from_slice(&port.to_be_bytes());
    bytes[4..8].copy_from_slice(&[10, 0, 0, last]);
    bytes
}

fn localhost(port: u16) -> [u8; 28] {
    let mut bytes = address(1, port);
    bytes[4..8].copy_from_slice(&[127, 0, 0, 1]);
    bytes
}

fn wildcard(port: u16) -> [u8; 28] {
    let mut bytes = address(0, port);
    bytes[4] = 0;
    bytes
}

fn parameters(qp_num: u32) -> ConnectionParameters {
    let mut private_data = PrivateData::default();
    private_data.0[0] = 77;
    ConnectionParameters {
        qp_num,
        private_data,
        private_data_len: 1,
        responder_resources: 3,
        initiator_depth: 5,
        retry_count: 6,
        rnr_retry_count: 7,
        valid: 1,
        ..ConnectionParameters::default()
    }
}

impl Managers {
    fn new(hosts: u16) -> (Self, Vec<CmFile>) {
        let world = World::new(hosts);
        let mut connections = Connections::new();
        let files = (0..u32::from(hosts))
            .map(|host| connections.open(silvan_verbs::DeviceId(host), host))
            .collect();
        (Self { world, connections }, files)
    }

    fn call(&mut self, file: CmFile, code: u32, body: &[u8]) -> Result<Vec<u8>, i32> {
        let mut command = code.to_bytes();
        command.extend((body.len() as u16).to_ne_bytes());
        command.extend(512_u16.to_ne_bytes());
        command.extend(body);
        let reply = self.connections.execute(file, &command, &self.world.verbs);
        match reply.errno {
            0 => Ok(reply.response),
            error => Err(error),
        }
    }

    fn create(&mut self, file: CmFile, uid: u64, ps: u16) -> u32 {
        let command = CreateId {
            uid,
            ps,
            ..CreateId::default()
        };
        let response = self.call(file, 0, &command.to_bytes()).unwrap();
        u32::parse(&response).unwrap()
    }

    fn destroy(&mut self, file: CmFile, id: u32) -> u32 {
        let command = DestroyId {
            id,
            ..DestroyId::default()
        };
        u32::parse(&self.call(file, 1, &command.to_bytes()).unwrap()).unwrap()
    }

    fn bind(&mut self, file: CmFile, id: u32, addr: [u8; 28]) -> Result<Vec<u8>, i32> {
        let command = BindIp {
            response: 0,
            addr,
            id,
        };
        self.call(file, 2, &command.to_bytes())
    }

    fn listen(&mut self, file: CmFile, uid: u64, ps: u16, addr: [u8; 28]) -> u32 {
        let id = self.create(file, uid, ps);
        self.bind(file, id, addr).unwrap();
        let command = Listen { id, backlog: 1 };
        self.call(file, 7, &command.to_bytes()).unwrap();
        id
    }

    /// An identifier with a route to the address.
    fn resolve(&mut self, file: CmFile, uid: u64, ps: u16, dst_addr: [u8; 28]) -> u32 {
        let id = self.create(file, uid, ps);
        let command = ResolveIp {
            src_addr: [0; 28],
            dst_addr,
            id,
            timeout_ms: 100,
        };
        self.call(file, 3, &command.to_bytes()).unwrap();
        assert_eq!(self.event(file).unwrap().kind, ADDRESS_RESOLVED);
        let command = ResolveRoute {
            id,
            timeout_ms: 100,
        };
        self.call(file, 4, &command.to_bytes()).unwrap();
        assert_eq!(self.event(file).unwrap().kind, ROUTE_RESOLVED);
        id
    }

    fn with_parameters(&mut self, file: CmFile, code: u32, front: &[u8], id: u32, qp: u32) {
        let mut body = front.to_vec();
        body.extend(parameters(qp).to_bytes());
        body.extend(id.to_bytes());
        body.extend([0; 12]);
        self.call(file, code, &body).unwrap();
    }

    fn connect(&mut self, file: CmFile, id: u32, qp: u32) {
        self.with_parameters(file, 6, &[], id, qp);
    }

    fn accept(&mut self, file: CmFile, id: u32, uid: u64, qp: u32) {
        self.with_parameters(file, 8, &uid.to_bytes(), id, qp);
    }

    fn disconnect(&mut self, file: CmFile, id: u32) -> Result<Vec<u8>, i32> {
        self.call(file, 10, &Disconnect { id }.to_bytes())
    }

    fn attributes(&mut self, file: CmFile, id: u32, qp_state: u32) -> QpAttributes {
        let command = InitQpAttributes {
            response: 0,
            id,
            qp_state,
        };
        let response = self.call(file, 11, &command.to_bytes()).unwrap();
        assert_eq!(response.len(), QpAttributes::SIZE);
        QpAttributes::parse(&response).unwrap()
    }

    fn event(&mut self, file: CmFile) -> Result<Event, i32> {
        let response = self.call(file, 12, &[0; 8])?;
        assert_eq!(response.len(), 336);
        let word = |at: usize| u32::parse(&response[at..]).unwrap();
        Ok(Event {
            uid: u64::parse(&response).unwrap(),
            id: word(8),
            kind: word(12),
            status: word(16),
            parameters: response[20..].to_vec(),
        })
    }

    /// The identifiers of both ends of a connection.
    fn connected(&mut self, files: &[CmFile]) -> (u32, u32) {
        let (client, server) = (files[0], files[1]);
        self.listen(server, 1, TCP, wildcard(7471));
        let own = self.resolve(client, 2, TCP, localhost(7471));
        self.connect(client, own, 100);
        let request = self.event(server).unwrap();
        assert_eq!((request.uid, request.kind), (1, CONNECT_REQUEST));
        let seen = ConnectionParameters::parse(&request.parameters).unwrap();
        assert_eq!((seen.responder_resources, seen.initiator_depth), (5, 3));
        assert_eq!((seen.private_data.0[0], seen.private_data_len), (77, 1));
        self.accept(server, request.id, 3, 200);
        let response = self.event(client).unwrap();
        assert_eq!((response.uid, response.kind), (2, CONNECT_RESPONSE));
        (own, request.id)
    }
}

#[test]
fn a_connection_has_the_attributes_of_both_ends() {
    let (mut managers, files) = Managers::new(2);
    let (own, other) = managers.connected(&files);
    for (file, id, lid, queue_pair) in [(files[0], own, 2, 200), (files[1], other, 1, 100)] {
        let init = managers.attributes(file, id, 1);
        assert_eq!((init.port_num, init.qp_access_flags), (1, 14));
        let ready = managers.attributes(file, id, 2);
        assert_eq!((ready.ah_attr.dlid, ready.dest_qp_num), (lid, queue_pair));
        assert_eq!((ready.path_mtu, ready.max_dest_rd_atomic), (5, 5));
        let sending = managers.attributes(file, id, 3);
        assert_eq!((sending.retry_cnt, sending.rnr_retry), (6, 7));
        assert_eq!(sending.max_rd_atomic, 3);
    }
    let option = SetOption {
        optval: 21,
        id: own,
        level: 0,
        optname: 3,
        optlen: 1,
    };
    managers.call(files[0], 14, &option.to_bytes()).unwrap();
    let timeouts = [(files[0], own), (files[1], other)]
        .map(|(file, id)| managers.attributes(file, id, 3).timeout);
    assert_eq!(timeouts, [21, 14]);
    managers.with_parameters(files[0], 8, &2_u64.to_bytes(), own, 0);
    let established = managers.event(files[1]).unwrap();
    assert_eq!((established.uid, established.kind), (3, ESTABLISHED));
    managers.disconnect(files[0], own).unwrap();
    for file in &files {
        assert_eq!(managers.event(*file).unwrap().kind, DISCONNECTED);
    }
    assert_eq!(managers.disconnect(files[1], other), Ok(Vec::new()));
    assert_eq!(managers.event(files[1]).unwrap_err(), EAGAIN);
}

#[test]
fn the_end_of_a_file_disconnects_the_other_end() {
    let (mut managers, files) = Managers::new(2);
    let (own, _) = managers.connected(&files);
    managers.connections.close(files[1]);
    let event = managers.event(files[0]).unwrap();
    assert_eq!((event.id, event.kind), (own, DISCONNECTED));
    assert_eq!(managers.event(files[0]).unwrap_err(), EAGAIN);
    assert_eq!(managers.destroy(files[0], own), 4);
    assert_eq!(managers.call(files[1], 12, &[0; 8]), Err(EINVAL));
}

#[test]
fn a_request_without_listener_or_without_wish_is_rejected() {
    let (mut managers, files) = Managers::new(2);
    let own = managers.resolve(files[0], 2, TCP, localhost(7471));
    managers.connect(files[0], own, 100);
    managers.connections.reject_old_requests();
    assert_eq!(managers.event(files[0]).unwrap_err(), EAGAIN);
    managers.connections.reject_old_requests();
    let event = managers.event(files[0]).unwrap();
    assert_eq!((event.kind, event.status), (REJECTED, 8));
    managers.listen(files[1], 1, TCP, wildcard(7471));
    managers.connect(files[0], own, 100);
    let request = managers.event(files[1]).unwrap();
    let refusal = Reject {
        id: request.id,
        ..Reject::default()
    };
    managers.call(files[1], 9, &refusal.to_bytes()).unwrap();
    let event = managers.event(files[0]).unwrap();
    assert_eq!((event.kind, event.status), (REJECTED, 28));
    // A listener that ends refuses what waits.
    let again = managers.resolve(files[0], 4, TCP, localhost(7471));
    managers.connect(files[0], again, 100);
    managers.connections.close(files[1]);
    let event = managers.event(files[0]).unwrap();
    assert_eq!((event.uid, event.kind), (4, REJECTED));
}

#[test]
fn a_listener_gets_requests_that_were_a_moment_early() {
    let (mut managers, files) = Managers::new(2);
    let own = managers.resolve(files[0], 2, TCP, localhost(7471));
    let gone = managers.resolve(files[0], 3, TCP, localhost(7471));
    let other = managers.resolve(files[0], 4, TCP, localhost(7472));
    for id in [own, gone, other] {
        managers.connect(files[0], id, 100);
    }
    managers.connections.reject_old_requests();
    managers.destroy(files[0], gone);
    managers.listen(files[1], 1, TCP, wildcard(7471));
    let request = managers.event(files[1]).unwrap();
    assert_eq!((request.uid, request.kind), (1, CONNECT_REQUEST));
    assert_eq!(managers.event(files[1]).unwrap_err(), EAGAIN);
    managers.connections.reject_old_requests();
    let event = managers.event(files[0]).unwrap();
    assert_eq!((event.id, event.kind), (other, REJECTED));
    assert_eq!(managers.event(files[0]).unwrap_err(), EAGAIN);
}

#[test]
fn addresses_of_hosts_choose_among_listeners() {
    let (mut managers, files) = Managers::new(3);
    for (uid, &file) in [(10, &files[0]), (11, &files[1]), (12, &files[2])] {
        managers.listen(file, uid, TCP, wildcard(7471));
    }
    let own = managers.resolve(files[0], 2, TCP, address(3, 7471));
    managers.connect(files[0], own, 100);
    assert_eq!(managers.event(files[2]).unwrap().uid, 12);
    let second = managers.create(files[1], 5, TCP);
    assert_eq!(
        managers.bind(files[1], second, wildcard(7471)),
        Err(EADDRINUSE)
    );
    assert_eq!(managers.bind(files[1], second, wildcard(0)), Ok(Vec::new()));
}

#[test]
fn a_datagram_service_gives_its_address() {
    let (mut managers, files) = Managers::new(2);
    managers.listen(files[1], 1, UDP, wildcard(7471));
    let own = managers.resolve(files[0], 2, UDP, localhost(7471));
    managers.connect(files[0], own, 0);
    let request = managers.event(files[1]).unwrap();
    managers.accept(files[1], request.id, 3, 200);
    let event = managers.event(files[0]).unwrap();
    assert_eq!((event.uid, event.kind), (2, ESTABLISHED));
    let seen = DatagramParameters::parse(&event.parameters).unwrap();
    assert_eq!((seen.qp_num, seen.qkey), (200, 0x0123_4567));
    assert_eq!((seen.ah_attr.dlid, seen.ah_attr.port_num), (2, 1));
}

#[test]
fn an_identifier_takes_its_events_to_another_file() {
    let (mut managers, files) = Managers::new(2);
    let other = managers.connections.open(silvan_verbs::DeviceId(0), 0);
    let (own, _) = managers.connected(&files);
    managers.connections.close(files[1]);
    let command = MigrateId {
        response: 0,
        id: own,
        fd: files[0].0,
    };
    let reported = managers.call(other, 18, &command.to_bytes()).unwrap();
    assert_eq!(u32::parse(&reported), Some(3));
    assert_eq!(managers.event(other).unwrap().kind, DISCONNECTED);
    assert_eq!(managers.disconnect(files[0], own), Err(EINVAL));
}

#[test]
fn a_group_has_an_address_until_its_member_leaves() {
    let (mut managers, files) = Managers::new(1);
    let mut group = address(5, 0);
    group[4] = 0xe0;
    let own = managers.resolve(files[0], 2, UDP, group);
    let mut body = 0_u64.to_bytes();
    body.extend(9_u64.to_bytes());
    body.extend(group);
    body.extend(own.to_bytes());
    let member = u32::parse(&managers.call(files[0], 16, &body).unwrap()).unwrap();
    let event = managers.event(files[0]).unwrap();
    assert_eq!((event.uid, event.id, event.kind), (9, member, 12));
    let seen = DatagramParameters::parse(&event.parameters).unwrap();
    assert_eq!(seen.ah_attr.grh.dgid[..4], [0xff, 0x12, 0x40, 0x01]);
    assert_eq!(seen.ah_attr.grh.dgid[12..], [0, 0, 0, 5]);
    assert_eq!((seen.qp_num, seen.ah_attr.dlid), (0xff_ffff, 0xc005));
    let leave = DestroyId {
        id: member,
        ..DestroyId::default()
    };
    let reported = managers.call(files[0], 17, &leave.to_bytes()).unwrap();
    assert_eq!(u32::parse(&reported), Some(1));
    assert_eq!(managers.call(files[0], 17, &leave.to_bytes()), Err(EINVAL));
    // The other form of the command, and an address of a host.
    let mut body = [0; 16].to_vec();
    body.extend(own.to_bytes());
    body.extend([0; 4]);
    body.extend(group);
    body.resize(152, 0);
    let member = u32::parse(&managers.call(files[0], 22, &body).unwrap()).unwrap();
    assert_eq!(managers.event(files[0]).unwrap().id, member);
    body[24..52].copy_from_slice(&address(5, 0));
    assert_eq!(managers.call(files[0], 22, &body), Err(EINVAL));
}

#[test]
fn commands_that_are_not_there_are_refused() {
    let (mut managers, files) = Managers::new(1);
    for code in [13, 19, 20, 21, 23, u32::MAX] {
        assert_eq!(managers.call(files[0], code, &[0; 300]), Err(ENOSYS));
    }
    let reply = managers
        .connections
        .execute(files[0], &[0; 7], &managers.world.verbs);
    assert_eq!(reply.errno, EINVAL);
}

proptest! {
    /// Random commands of hostile programs: no panic, and a connection of others lives on.
    #[test]
    fn random_commands_harm_nobody(
        commands in prop::collection::vec(
            (0_u32..24, prop::collection::vec(prop_oneof![Just(0_u8), 1_u8..8, any::<u8>()], 0..340)),
            0..60,
        ),
    ) {
        let (mut managers, files) = Managers::new(3);
        let (own, other) = managers.connected(&files);
        for (code, body) in commands {
            let _ = managers.call(files[2], code, &body);
        }
        managers.connections.close(files[2]);
        let ready = managers.attributes(files[0], own, 2);
        prop_assert_eq!((ready.ah_attr.dlid, ready.dest_qp_num), (2, 200));
        prop_assert_eq!(managers.disconnect(files[1], other), Ok(Vec::new()));
    }
}
