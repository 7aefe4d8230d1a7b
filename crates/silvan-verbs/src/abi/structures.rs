//! Structures of `ib_user_verbs.h`, with its names; `response` is the address of the response in the process.

use super::layout::structures;

structures! {
    /// Front of each command.
    CommandHeader = "ib_uverbs_cmd_hdr" { command: u32, in_words: u16, out_words: u16, }

    /// Event of an asynchronous descriptor.
    AsyncEvent = "ib_uverbs_async_event_desc" { element: u64, event_type: u32, reserved: u32, }

    /// Event of a completion channel.
    CompletionEvent = "ib_uverbs_comp_event_desc" { cq_handle: u64, }

    /// GET_CONTEXT.
    GetContext = "ib_uverbs_get_context" { response: u64, }

    /// Response of GET_CONTEXT.
    GetContextResponse = "ib_uverbs_get_context_resp" { async_fd: u32, num_comp_vectors: u32, }

    /// QUERY_DEVICE.
    QueryDevice = "ib_uverbs_query_device" { response: u64, }

    /// Response of QUERY_DEVICE.
    QueryDeviceResponse = "ib_uverbs_query_device_resp" {
        fw_ver: u64,
        node_guid: [u8; 8],
        sys_image_guid: [u8; 8],
        max_mr_size: u64,
        page_size_cap: u64,
        vendor_id: u32,
        vendor_part_id: u32,
        hw_ver: u32,
        max_qp: u32,
        max_qp_wr: u32,
        device_cap_flags: u32,
        max_sge: u32,
        max_sge_rd: u32,
        max_cq: u32,
        max_cqe: u32,
        max_mr: u32,
        max_pd: u32,
        max_qp_rd_atom: u32,
        max_ee_rd_atom: u32,
        max_res_rd_atom: u32,
        max_qp_init_rd_atom: u32,
        max_ee_init_rd_atom: u32,
        atomic_cap: u32,
        max_ee: u32,
        max_rdd: u32,
        max_mw: u32,
        max_raw_ipv6_qp: u32,
        max_raw_ethy_qp: u32,
        max_mcast_grp: u32,
        max_mcast_qp_attach: u32,
        max_total_mcast_qp_attach: u32,
        max_ah: u32,
        max_fmr: u32,
        max_map_per_fmr: u32,
        max_srq: u32,
        max_srq_wr: u32,
        max_srq_sge: u32,
        max_pkeys: u16,
        local_ca_ack_delay: u8,
        phys_port_cnt: u8,
        reserved: [u8; 4],
    }

    /// QUERY_PORT.
    QueryPort = "ib_uverbs_query_port" { response: u64, port_num: u8, reserved: [u8; 7], }

    /// Response of QUERY_PORT.
    QueryPortResponse = "ib_uverbs_query_port_resp" {
        port_cap_flags: u32,
        max_msg_sz: u32,
        bad_pkey_cntr: u32,
        qkey_viol_cntr: u32,
        gid_tbl_len: u32,
        pkey_tbl_len: u16,
        lid: u16,
        sm_lid: u16,
        state: u8,
        max_mtu: u8,
        active_mtu: u8,
        lmc: u8,
        max_vl_num: u8,
        sm_sl: u8,
        subnet_timeout: u8,
        init_type_reply: u8,
        active_width: u8,
        active_speed: u8,
        phys_state: u8,
        link_layer: u8,
        flags: u8,
        reserved: u8,
    }

    /// ALLOC_PD.
    AllocPd = "ib_uverbs_alloc_pd" { response: u64, }

    /// Response of ALLOC_PD.
    AllocPdResponse = "ib_uverbs_alloc_pd_resp" { pd_handle: u32, }

    /// DEALLOC_PD.
    DeallocPd = "ib_uverbs_dealloc_pd" { pd_handle: u32, }

    /// REG_MR.
    RegMr = "ib_uverbs_reg_mr" {
        response: u64, start: u64, length: u64, hca_va: u64, pd_handle: u32, access_flags: u32,
    }

    /// Response of REG_MR.
    RegMrResponse = "ib_uverbs_reg_mr_resp" { mr_handle: u32, lkey: u32, rkey: u32, }

    /// DEREG_MR.
    DeregMr = "ib_uverbs_dereg_mr" { mr_handle: u32, }

    /// CREATE_COMP_CHANNEL.
    CreateCompChannel = "ib_uverbs_create_comp_channel" { response: u64, }

    /// Response of CREATE_COMP_CHANNEL.
    CreateCompChannelResponse = "ib_uverbs_create_comp_channel_resp" { fd: u32, }

    /// CREATE_CQ.
    CreateCq = "ib_uverbs_create_cq" {
        response: u64, user_handle: u64, cqe: u32, comp_vector: u32, comp_channel: i32, reserved: u32,
    }

    /// Response of CREATE_CQ.
    CreateCqResponse = "ib_uverbs_create_cq_resp" { cq_handle: u32, cqe: u32, }

    /// RESIZE_CQ.
    ResizeCq = "ib_uverbs_resize_cq" { response: u64, cq_handle: u32, cqe: u32, }

    /// Response of RESIZE_CQ.
    ResizeCqResponse = "ib_uverbs_resize_cq_resp" { cqe: u32, reserved: u32, }

    /// DESTROY_CQ.
    DestroyCq = "ib_uverbs_destroy_cq" { response: u64, cq_handle: u32, reserved: u32, }

    /// Response of DESTROY_CQ.
    DestroyCqResponse = "ib_uverbs_destroy_cq_resp" { comp_events_reported: u32, async_events_reported: u32, }

    /// POLL_CQ.
    PollCq = "ib_uverbs_poll_cq" { response: u64, cq_handle: u32, ne: u32, }

    /// Front of the response of POLL_CQ; completions follow.
    PollCqResponse = "ib_uverbs_poll_cq_resp" { count: u32, reserved: u32, }

    /// A completion.
    WorkCompletion = "ib_uverbs_wc" {
        wr_id: u64,
        status: u32,
        opcode: u32,
        vendor_err: u32,
        byte_len: u32,
        /// Immediate data, as it is on the wire.
        ex: [u8; 4],
        qp_num: u32,
        src_qp: u32,
        wc_flags: u32,
        pkey_index: u16,
        slid: u16,
        sl: u8,
        dlid_path_bits: u8,
        port_num: u8,
        reserved: u8,
    }

    /// REQ_NOTIFY_CQ.
    ReqNotifyCq = "ib_uverbs_req_notify_cq" { cq_handle: u32, solicited_only: u32, }

    /// Global route of an address.
    GlobalRoute = "ib_uverbs_global_route" {
        dgid: [u8; 16], flow_label: u32, sgid_index: u8, hop_limit: u8, traffic_class: u8, reserved: u8,
    }

    /// Address of CREATE_AH.
    AhAttributes = "ib_uverbs_ah_attr" {
        grh: GlobalRoute,
        dlid: u16,
        sl: u8,
        src_path_bits: u8,
        static_rate: u8,
        is_global: u8,
        port_num: u8,
        reserved: u8,
    }

    /// CREATE_AH.
    CreateAh = "ib_uverbs_create_ah" {
        response: u64, user_handle: u64, pd_handle: u32, reserved: u32, attr: AhAttributes,
    }

    /// Response of CREATE_AH.
    CreateAhResponse = "ib_uverbs_create_ah_resp" { ah_handle: u32, }

    /// DESTROY_AH.
    DestroyAh = "ib_uverbs_destroy_ah" { ah_handle: u32, }

    /// CREATE_QP.
    CreateQp = "ib_uverbs_create_qp" {
        response: u64,
        user_handle: u64,
        pd_handle: u32,
        send_cq_handle: u32,
        recv_cq_handle: u32,
        srq_handle: u32,
        max_send_wr: u32,
        max_recv_wr: u32,
        max_send_sge: u32,
        max_recv_sge: u32,
        max_inline_data: u32,
        sq_sig_all: u8,
        qp_type: u8,
        is_srq: u8,
        reserved: u8,
    }

    /// Response of CREATE_QP.
    CreateQpResponse = "ib_uverbs_create_qp_resp" {
        qp_handle: u32,
        qpn: u32,
        max_send_wr: u32,
        max_recv_wr: u32,
        max_send_sge: u32,
        max_recv_sge: u32,
        max_inline_data: u32,
        reserved: u32,
    }

    /// Address of a queue pair in MODIFY_QP and in the response of QUERY_QP.
    QpDestination = "ib_uverbs_qp_dest" {
        dgid: [u8; 16],
        flow_label: u32,
        dlid: u16,
        reserved: u16,
        sgid_index: u8,
        hop_limit: u8,
        traffic_class: u8,
        sl: u8,
        src_path_bits: u8,
        static_rate: u8,
        is_global: u8,
        port_num: u8,
    }

    /// QUERY_QP.
    QueryQp = "ib_uverbs_query_qp" { response: u64, qp_handle: u32, attr_mask: u32, }

    /// Response of QUERY_QP.
    QueryQpResponse = "ib_uverbs_query_qp_resp" {
        dest: QpDestination,
        alt_dest: QpDestination,
        max_send_wr: u32,
        max_recv_wr: u32,
        max_send_sge: u32,
        max_recv_sge: u32,
        max_inline_data: u32,
        qkey: u32,
        rq_psn: u32,
        sq_psn: u32,
        dest_qp_num: u32,
        qp_access_flags: u32,
        pkey_index: u16,
        alt_pkey_index: u16,
        qp_state: u8,
        cur_qp_state: u8,
        path_mtu: u8,
        path_mig_state: u8,
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
        sq_sig_all: u8,
        reserved: [u8; 5],
    }

    /// MODIFY_QP.
    ModifyQp = "ib_uverbs_modify_qp" {
        dest: QpDestination,
        alt_dest: QpDestination,
        qp_handle: u32,
        attr_mask: u32,
        qkey: u32,
        rq_psn: u32,
        sq_psn: u32,
        dest_qp_num: u32,
        qp_access_flags: u32,
        pkey_index: u16,
        alt_pkey_index: u16,
        qp_state: u8,
        cur_qp_state: u8,
        path_mtu: u8,
        path_mig_state: u8,
        en_sqd_async_notify: u8,
        max_rd_atomic: u8,
        max_dest_rd_atomic: u8,
        min_rnr_timer: u8,
        port_num: u8,
        timeout: u8,
        retry_cnt: u8,
        rnr_retry: u8,
        alt_port_num: u8,
        alt_timeout: u8,
        reserved: [u8; 2],
    }

    /// DESTROY_QP.
    DestroyQp = "ib_uverbs_destroy_qp" { response: u64, qp_handle: u32, reserved: u32, }

    /// Response of DESTROY_QP.
    DestroyQpResponse = "ib_uverbs_destroy_qp_resp" { events_reported: u32, }

    /// Scatter or gather element of a work request.
    Sge = "ib_uverbs_sge" { addr: u64, length: u32, lkey: u32, }

    /// Send work request; `wr` depends on the operation and is read as [`RdmaPart`], [`AtomicPart`] or [`DatagramPart`].
    SendWr = "ib_uverbs_send_wr" {
        wr_id: u64,
        num_sge: u32,
        opcode: u32,
        send_flags: u32,
        /// Immediate data, as it is on the wire.
        ex: [u8; 4],
        wr: [u8; 32],
    }

    /// Front of POST_SEND; work requests of `wqe_size` bytes and then all elements follow.
    PostSend = "ib_uverbs_post_send" { response: u64, qp_handle: u32, wr_count: u32, sge_count: u32, wqe_size: u32, }

    /// Response of POST_SEND.
    PostSendResponse = "ib_uverbs_post_send_resp" { bad_wr: u32, }

    /// Receive work request.
    ReceiveWr = "ib_uverbs_recv_wr" { wr_id: u64, num_sge: u32, reserved: u32, }

    /// Front of POST_RECV; work requests and elements follow, as in [`PostSend`].
    PostRecv = "ib_uverbs_post_recv" { response: u64, qp_handle: u32, wr_count: u32, sge_count: u32, wqe_size: u32, }

    /// Response of POST_RECV.
    PostRecvResponse = "ib_uverbs_post_recv_resp" { bad_wr: u32, }

    /// Front of POST_SRQ_RECV; work requests and elements follow, as in [`PostSend`].
    PostSrqRecv = "ib_uverbs_post_srq_recv" {
        response: u64, srq_handle: u32, wr_count: u32, sge_count: u32, wqe_size: u32,
    }

    /// Response of POST_SRQ_RECV.
    PostSrqRecvResponse = "ib_uverbs_post_srq_recv_resp" { bad_wr: u32, }

    /// ATTACH_MCAST.
    AttachMcast = "ib_uverbs_attach_mcast" { gid: [u8; 16], qp_handle: u32, mlid: u16, reserved: u16, }

    /// DETACH_MCAST.
    DetachMcast = "ib_uverbs_detach_mcast" { gid: [u8; 16], qp_handle: u32, mlid: u16, reserved: u16, }

    /// CREATE_SRQ.
    CreateSrq = "ib_uverbs_create_srq" {
        response: u64, user_handle: u64, pd_handle: u32, max_wr: u32, max_sge: u32, srq_limit: u32,
    }

    /// Response of CREATE_SRQ.
    CreateSrqResponse = "ib_uverbs_create_srq_resp" { srq_handle: u32, max_wr: u32, max_sge: u32, srqn: u32, }

    /// MODIFY_SRQ.
    ModifySrq = "ib_uverbs_modify_srq" { srq_handle: u32, attr_mask: u32, max_wr: u32, srq_limit: u32, }

    /// QUERY_SRQ.
    QuerySrq = "ib_uverbs_query_srq" { response: u64, srq_handle: u32, reserved: u32, }

    /// Response of QUERY_SRQ.
    QuerySrqResponse = "ib_uverbs_query_srq_resp" { max_wr: u32, max_sge: u32, srq_limit: u32, reserved: u32, }

    /// DESTROY_SRQ.
    DestroySrq = "ib_uverbs_destroy_srq" { response: u64, srq_handle: u32, reserved: u32, }

    /// Response of DESTROY_SRQ.
    DestroySrqResponse = "ib_uverbs_destroy_srq_resp" { events_reported: u32, }
}

/// Parts of [`SendWr`] that share their place; the header has them without a name of their own.
pub mod parts {
    use crate::abi::layout::structures;

    structures! {
        /// Remote memory of RDMA.
        RdmaPart = "rdma" { remote_addr: u64, rkey: u32, reserved: u32, }

        /// Remote memory and values of an atomic operation.
        AtomicPart = "atomic" { remote_addr: u64, compare_add: u64, swap: u64, rkey: u32, reserved: u32, }

        /// Destination of a datagram.
        DatagramPart = "ud" { ah: u32, remote_qpn: u32, remote_qkey: u32, reserved: u32, }
    }
}
