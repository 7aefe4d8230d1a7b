/*
 * Writes libibmad.txt: for every field that libibmad knows and silvan-mad has, the bytes of an
 * attribute in which that field alone is set, made by libibmad.
 *
 *     gcc -o libibmad libibmad.c -libmad && ./libibmad > libibmad.txt
 *
 * One line per field: attribute, field by silvan-mad's name, value, bytes without the zeros at their end.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <infiniband/mad.h>

/* Fields that follow each other in libibmad's enumeration and stand at `base` of the attribute. */
struct run {
	const char *attribute;
	int length, base, first;
	const char *names;
};

static uint64_t value_of(int field)
{
	/* The top and bottom bit are set at every width; what lies between differs by field. */
	uint8_t ones[256];
	memset(ones, 0xff, sizeof ones);
	uint64_t all = 0;
	mad_decode_field(ones, field, &all);
	int width = 0;
	for (uint64_t rest = all; rest; rest >>= 1)
		width++;
	uint64_t noise = 0x9e3779b97f4a7c15ull * (uint64_t)(field + 1);
	return (noise & all) | 1 | 1ull << (width - 1);
}

static void put(const char *attribute, int length, int base, int field, const char *name)
{
	uint8_t bytes[256] = { 0 };
	uint64_t value = value_of(field);
	mad_encode_field(bytes + base, field, &value);
	printf("%s %s %#llx ", attribute, name, (unsigned long long)value);
	while (length > 0 && bytes[length - 1] == 0)
		length--;
	for (int i = 0; i < length; i++)
		printf("%02x", bytes[i]);
	printf("\n");
}

static void put_run(struct run run)
{
	char names[2048];
	snprintf(names, sizeof names, "%s", run.names);
	int field = run.first;
	for (char *name = strtok(names, " "); name; name = strtok(NULL, " "), field++)
		if (strcmp(name, "-") != 0)
			put(run.attribute, run.length, run.base, field, name);
}

static void put_array(const char *attribute, int length, int first, int count, const char *name)
{
	for (int i = 0; i < count; i++) {
		char element[64];
		snprintf(element, sizeof element, "%s[%d]", name, i);
		put(attribute, length, 0, first + i, element);
	}
}

static void put_elements(struct run run, int size, int count, const char *array)
{
	for (int i = 0; i < count; i++) {
		char names[2048], element[128];
		snprintf(names, sizeof names, "%s", run.names);
		int field = run.first;
		for (char *name = strtok(names, " "); name; name = strtok(NULL, " "), field++) {
			snprintf(element, sizeof element, "%s[%d].%s", array, i, name);
			put(run.attribute, run.length, run.base + i * size, field, element);
		}
	}
}

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static const struct run runs[] = {
	{ "NodeInfo", 64, 0, IB_NODE_BASE_VERS_F,
	  "base_version class_version node_type num_ports system_image_guid node_guid port_guid "
	  "partition_cap device_id revision local_port vendor_id" },
	{ "SwitchInfo", 64, 0, IB_SW_LINEAR_FDB_CAP_F,
	  "linear_fdb_cap random_fdb_cap multicast_fdb_cap linear_fdb_top default_port "
	  "default_multicast_primary_port default_multicast_not_primary_port life_time "
	  "port_state_change optimized_sl_to_vl_mapping lids_per_port partition_enforcement_cap "
	  "inbound_enforcement_cap outbound_enforcement_cap filter_raw_inbound_cap "
	  "filter_raw_outbound_cap enhanced_port_0 multicast_fdb_top" },
	{ "PortInfo", 64, 0, IB_PORT_MKEY_F,
	  "m_key gid_prefix lid master_sm_lid capability_mask diag_code m_key_lease_period "
	  "local_port link_width_enabled link_width_supported link_width_active "
	  "link_speed_supported port_state physical_state link_down_default_state m_key_protect "
	  "lmc link_speed_active link_speed_enabled neighbor_mtu master_sm_sl vl_cap init_type "
	  "vl_high_limit vl_arbitration_high_cap vl_arbitration_low_cap init_type_reply mtu_cap "
	  "vl_stall_count hoq_life operational_vls partition_enforcement_inbound "
	  "partition_enforcement_outbound filter_raw_inbound filter_raw_outbound m_key_violations "
	  "p_key_violations q_key_violations guid_cap client_reregister "
	  "multicast_p_key_trap_suppression subnet_timeout response_time local_phy_errors "
	  "overrun_errors max_credit_hint link_round_trip_latency" },
	{ "PortInfo", 64, 0, IB_PORT_CAPMASK2_F,
	  "capability_mask2 link_speed_ext_active link_speed_ext_supported link_speed_ext_enabled" },
	{ "Notice", 64, 0, IB_NOTICE_IS_GENERIC_F,
	  "is_generic notice_type producer trap_number issuer_lid toggle count" },
	{ "SmInfo", 64, 0, IB_SMINFO_GUID_F, "guid sm_key activity priority state" },
	{ "ClassPortInfo", 192, 0, IB_CPI_BASEVER_F,
	  "base_version class_version capability_mask capability_mask2 response_time - "
	  "redirect_traffic_class redirect_sl redirect_flow_label redirect_lid redirect_p_key "
	  "redirect_qp redirect_q_key - trap_traffic_class trap_sl trap_flow_label trap_lid "
	  "trap_p_key trap_hop_limit trap_qp trap_q_key" },
	/* QP1Dropped is left out: libibmad's table has it in VL15Dropped's location. */
	{ "PortCounters", 192, 0, IB_PC_PORT_SELECT_F,
	  "port_select counter_select symbol_errors link_error_recovery link_downed rcv_errors "
	  "rcv_remote_physical_errors rcv_switch_relay_errors xmit_discards "
	  "xmit_constraint_errors rcv_constraint_errors counter_select2 "
	  "local_link_integrity_errors excessive_buffer_overrun_errors vl15_dropped xmit_data "
	  "rcv_data xmit_pkts rcv_pkts xmit_wait" },
	{ "PortCountersExtended", 192, 0, IB_PC_EXT_PORT_SELECT_F,
	  "port_select counter_select xmit_data rcv_data xmit_pkts rcv_pkts unicast_xmit_pkts "
	  "unicast_rcv_pkts multicast_xmit_pkts multicast_rcv_pkts" },
	{ "PortCountersExtended", 192, 0, IB_PC_EXT_COUNTER_SELECT2_F,
	  "counter_select2 symbol_errors link_error_recovery link_downed rcv_errors "
	  "rcv_remote_physical_errors rcv_switch_relay_errors xmit_discards "
	  "xmit_constraint_errors rcv_constraint_errors local_link_integrity_errors "
	  "excessive_buffer_overrun_errors vl15_dropped xmit_wait qp1_dropped" },
	{ "PortXmitDiscardDetails", 192, 0, IB_PC_XMT_INACT_DISC_F,
	  "inactive_discards neighbor_mtu_discards sw_lifetime_limit_discards "
	  "sw_hoq_lifetime_limit_discards" },
	{ "PortRcvErrorDetails", 192, 0, IB_PC_RCV_LOCAL_PHY_ERR_F,
	  "local_physical_errors malformed_packet_errors buffer_overrun_errors "
	  "dlid_mapping_errors vl_mapping_errors looping_errors" },
	{ "PortSamplesControl", 192, 0, IB_PSC_OPCODE_F,
	  "op_code port_select tick counter_width counter_mask_0 counter_masks_1_to_9 "
	  "counter_masks_10_to_14 sample_mechanisms sample_status option_mask vendor_mask "
	  "sample_start sample_interval tag" },
	{ "PortSamplesControl", 192, 0, IB_PSC_SAMPLES_ONLY_OPT_MASK_F,
	  "samples_only_option_mask" },
	{ "PortExtendedSpeedsCounters", 192, 0, IB_PESC_PORT_SELECT_F,
	  "port_select counter_select sync_header_errors unknown_blocks" },
	{ "PortExtendedSpeedsCounters", 192, 0, IB_PESC_PORT_FEC_CORR_BLOCK_CTR_F,
	  "port_fec_correctable port_fec_uncorrectable port_fec_corrected_symbols" },
	{ "PortOpRcvCounters", 192, 0, IB_PC_PORT_OP_RCV_PKTS_F, "op_rcv_pkts op_rcv_data" },
	{ "PortFlowCtlCounters", 192, 0, IB_PC_PORT_XMIT_FLOW_PKTS_F,
	  "xmit_flow_pkts rcv_flow_pkts" },
	{ "PortRcvConCtrl", 192, 0, IB_PC_RCV_CON_CTRL_PKT_RCV_FECN_F, "fecn becn" },
	{ "PortXmitConCtrl", 192, 0, IB_PC_XMIT_CON_CTRL_TIME_CONG_F, "time_cong" },
	{ "CongestionInfo", 192, 0, IB_CC_CONGESTION_INFO_F, "flags control_table_cap" },
	{ "CongestionKeyInfo", 192, 0, IB_CC_CONGESTION_KEY_INFO_CC_KEY_F,
	  "cc_key protect lease_period violations" },
	{ "SwitchCongestionSetting", 192, 0, IB_CC_SWITCH_CONGESTION_SETTING_CONTROL_MAP_F,
	  "control_map - - threshold packet_size cs_threshold - marking_rate" },
	{ "CaCongestionSetting", 192, 0, IB_CC_CA_CONGESTION_SETTING_PORT_CONTROL_F,
	  "port_control control_map" },
	{ "CongestionControlTable", 192, 0, IB_CC_CONGESTION_CONTROL_TABLE_CCTI_LIMIT_F,
	  "ccti_limit" },
	{ "TimeStamp", 192, 0, IB_CC_TIMESTAMP_F, "time_stamp" },
	{ "SwitchLog", 224, 0, IB_CC_CONGESTION_LOG_CONGESTION_FLAGS_F, "flags" },
	{ "SwitchLog", 224, 0, IB_CC_CONGESTION_LOG_SWITCH_LOG_EVENTS_COUNTER_F,
	  "events current_timestamp" },
	{ "CaLog", 224, 0, IB_CC_CONGESTION_LOG_CONGESTION_FLAGS_F, "flags" },
	{ "CaLog", 224, 0, IB_CC_CONGESTION_LOG_CA_THRESHOLD_EVENT_COUNTER_F,
	  "events event_map current_timestamp" },
};

int main(void)
{
	for (unsigned i = 0; i < COUNT(runs); i++)
		put_run(runs[i]);

	put_array("GuidInfo", 64, IB_GI_GUID0_F, 1, "guids");
	put_array("PortSamplesControl", 192, IB_PSC_COUNTER_SEL0_F, 15, "counter_select");
	put_array("PortExtendedSpeedsCounters", 192, IB_PESC_ERR_DET_CTR_LANE0_F, 12,
		  "error_detection");
	put_array("PortExtendedSpeedsCounters", 192, IB_PESC_FEC_CORR_BLOCK_CTR_LANE0_F, 12,
		  "fec_correctable");
	put_array("PortExtendedSpeedsCounters", 192, IB_PESC_FEC_UNCORR_BLOCK_CTR_LANE0_F, 12,
		  "fec_uncorrectable");
	put_array("PortXmitDataSl", 192, IB_PC_XMT_DATA_SL0_F, 16, "data");
	put_array("PortRcvDataSl", 192, IB_PC_RCV_DATA_SL0_F, 16, "data");
	put_array("PortVlOpPackets", 192, IB_PC_PORT_VL_OP_PACKETS0_F, 16, "packets");
	put_array("PortVlOpData", 192, IB_PC_PORT_VL_OP_DATA0_F, 16, "data");
	put_array("PortVlXmitFlowCtlUpdateErrors", 192,
		  IB_PC_PORT_VL_XMIT_FLOW_CTL_UPDATE_ERRORS0_F, 16, "errors");
	put_array("PortVlXmitWaitCounters", 192, IB_PC_PORT_VL_XMIT_WAIT0_F, 16, "wait");
	put_array("SwPortVlCongestion", 192, IB_PC_SW_PORT_VL_CONGESTION0_F, 16, "congestion");
	put_array("PortSlRcvFecn", 192, IB_PC_SL_RCV_FECN0_F, 16, "fecn");
	put_array("PortSlRcvBecn", 192, IB_PC_SL_RCV_BECN0_F, 16, "becn");
	put_array("PortVlXmitTimeCong", 192, IB_PC_VL_XMIT_TIME_CONG0_F, 15, "time_cong");

	/* Where ibccquery looks for the elements. */
	put_elements((struct run){ "SwitchPortCongestionSetting", 192, 0,
		IB_CC_SWITCH_PORT_CONGESTION_SETTING_ELEMENT_VALID_F,
		"valid credit_starvation threshold packet_size marking_rate" }, 4, 48, "ports");
	put_elements((struct run){ "CaCongestionSetting", 192, 4,
		IB_CC_CA_CONGESTION_ENTRY_CCTI_TIMER_F,
		"ccti_timer ccti_increase trigger_threshold ccti_min" }, 8, 16, "entries");
	put_elements((struct run){ "CongestionControlTable", 192, 4,
		IB_CC_CONGESTION_CONTROL_TABLE_ENTRY_CCT_SHIFT_F, "shift multiplier" },
		2, 64, "entries");
	put_elements((struct run){ "SwitchLog", 224, 40,
		IB_CC_CONGESTION_LOG_ENTRY_SWITCH_SLID_F,
		"source_lid destination_lid sl timestamp" }, 12, 15, "entries");
	put_elements((struct run){ "CaLog", 224, 12,
		IB_CC_CONGESTION_LOG_ENTRY_CA_LOCAL_QP_CN_ENTRY_F,
		"local_qp sl service_type remote_qp local_lid remote_lid timestamp" },
		16, 13, "entries");

	put("Mad", 256, 0, IB_MAD_METHOD_F, "method");
	put("Mad", 256, 0, IB_MAD_CLASSVER_F, "class_version");
	put("Mad", 256, 0, IB_MAD_MGMTCLASS_F, "class");
	put("Mad", 256, 0, IB_MAD_BASEVER_F, "base_version");
	put("Mad", 256, 0, IB_MAD_STATUS_F, "status");
	put("Mad", 256, 0, IB_DRSMP_HOPCNT_F, "hop_count");
	put("Mad", 256, 0, IB_DRSMP_HOPPTR_F, "hop_pointer");
	put("Mad", 256, 0, IB_DRSMP_DIRECTION_F, "returning");
	put("Mad", 256, 0, IB_MAD_TRID_F, "transaction_id");
	put("Mad", 256, 0, IB_MAD_ATTRID_F, "attribute_id");
	put("Mad", 256, 0, IB_MAD_ATTRMOD_F, "modifier");
	put("Mad", 256, 0, IB_MAD_MKEY_F, "key");
	put("Mad", 256, 0, IB_CC_CCKEY_F, "key");
	put("Mad", 256, 0, IB_DRSMP_DRDLID_F, "destination_lid");
	put("Mad", 256, 0, IB_DRSMP_DRSLID_F, "source_lid");
	return 0;
}
