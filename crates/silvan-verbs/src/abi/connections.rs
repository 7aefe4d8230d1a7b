//! Structures of `rdma_user_cm.h`, with its names. Unions are bytes.

use super::layout::structures;
use super::structures::AhAttributes;

structures! {
    /// CREATE_ID.
    CreateId = "rdma_ucm_create_id" { uid: u64, response: u64, ps: u16, qp_type: u8, reserved: [u8; 5], }

    /// DESTROY_ID and LEAVE_MCAST.
    DestroyId = "rdma_ucm_destroy_id" { response: u64, id: u32, reserved: u32, }

    /// BIND_IP.
    BindIp = "rdma_ucm_bind_ip" { response: u64, addr: [u8; 28], id: u32, }

    /// RESOLVE_IP.
    ResolveIp = "rdma_ucm_resolve_ip" { src_addr: [u8; 28], dst_addr: [u8; 28], id: u32, timeout_ms: u32, }

    /// RESOLVE_ROUTE.
    ResolveRoute = "rdma_ucm_resolve_route" { id: u32, timeout_ms: u32, }

    /// QUERY_ROUTE.
    QueryRoute = "rdma_ucm_query" { response: u64, id: u32, option: u32, }

    /// A path in the response of QUERY_ROUTE.
    PathRecord = "ib_user_path_rec" {
        dgid: [u8; 16],
        sgid: [u8; 16],
        dlid: [u8; 2],
        slid: [u8; 2],
        raw_traffic: u32,
        flow_label: [u8; 4],
        reversible: u32,
        mtu: u32,
        pkey: [u8; 2],
        hop_limit: u8,
        traffic_class: u8,
        numb_path: u8,
        sl: u8,
        mtu_selector: u8,
        rate_selector: u8,
        rate: u8,
        packet_life_time_selector: u8,
        packet_life_time: u8,
        preference: u8,
    }

    /// Parameters of CONNECT, ACCEPT and their events.
    ConnectionParameters = "rdma_ucm_conn_param" {
        qp_num: u32,
        qkey: u32,
        private_data: PrivateData,
        private_data_len: u8,
        srq: u8,
        responder_resources: u8,
        initiator_depth: u8,
        flow_control: u8,
        retry_count: u8,
        rnr_retry_count: u8,
        valid: u8,
    }

    /// Parameters of an event of a datagram service.
    DatagramParameters = "rdma_ucm_ud_param" {
        qp_num: u32,
        qkey: u32,
        ah_attr: AhAttributes,
        private_data: PrivateData,
        private_data_len: u8,
        reserved: [u8; 7],
    }

    /// LISTEN.
    Listen = "rdma_ucm_listen" { id: u32, backlog: u32, }

    /// REJECT.
    Reject = "rdma_ucm_reject" {
        id: u32, private_data_len: u8, reason: u8, reserved: [u8; 2], private_data: PrivateData,
    }

    /// DISCONNECT.
    Disconnect = "rdma_ucm_disconnect" { id: u32, }

    /// INIT_QP_ATTR.
    InitQpAttributes = "rdma_ucm_init_qp_attr" { response: u64, id: u32, qp_state: u32, }

    /// NOTIFY.
    Notify = "rdma_ucm_notify" { id: u32, event: u32, }

    /// SET_OPTION.
    SetOption = "rdma_ucm_set_option" { optval: u64, id: u32, level: u32, optname: u32, optlen: u32, }

    /// MIGRATE_ID.
    MigrateId = "rdma_ucm_migrate_id" { response: u64, id: u32, fd: u32, }

    /// JOIN_IP_MCAST.
    JoinIpMulticast = "rdma_ucm_join_ip_mcast" { response: u64, uid: u64, addr: [u8; 28], id: u32, }

    /// Response of INIT_QP_ATTR.
    QpAttributes = "ib_uverbs_qp_attr" {
        qp_attr_mask: u32,
        qp_state: u32,
        cur_qp_state: u32,
        path_mtu: u32,
        path_mig_state: u32,
        qkey: u32,
        rq_psn: u32,
        sq_psn: u32,
        dest_qp_num: u32,
        qp_access_flags: u32,
        ah_attr: AhAttributes,
        alt_ah_attr: AhAttributes,
        max_send_wr: u32,
        max_recv_wr: u32,
        max_send_sge: u32,
        max_recv_sge: u32,
        max_inline_data: u32,
        pkey_index: u16,
        alt_pkey_index: u16,
        en_sqd_async_notify: u8,
        sq_draining: u8,
        max_rd_atomic: u8,
        max_dest_rd_atomic: u8,
        min_rnr_timer: u8,
        port_num: u8,
        timeout: u8,
        retry_cnt: u8,
        rnr_retry: u8,
        alt_port_num: u8,
        alt_timeout: u8,
        reserved: [u8; 5],
    }
}

/// Data that programs exchange with a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrivateData(pub [u8; 256]);

impl Default for PrivateData {
    fn default() -> Self {
        Self([0; 256])
    }
}

impl super::Layout for PrivateData {
    const SIZE: usize = 256;

    fn read(bytes: &mut &[u8]) -> Option<Self> {
        super::Layout::read(bytes).map(Self)
    }

    fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.0);
    }
}
