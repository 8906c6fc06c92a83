package versions

import "strings"

// experimental are the variables ETCD_EXPERIMENTAL_… that etcd 3.7 does not know any more, without that prefix, and the
// feature gate that replaces one; empty where it is the variable without EXPERIMENTAL_. Both replacements are known from 3.6 on.
var experimental = map[string]string{
	"BOOTSTRAP_DEFRAG_THRESHOLD_MEGABYTES": "",
	"COMPACTION_BATCH_LIMIT":               "",
	"COMPACTION_SLEEP_INTERVAL":            "",
	"COMPACT_HASH_CHECK_ENABLED":           "CompactHashCheck",
	"COMPACT_HASH_CHECK_TIME":              "",
	"CORRUPT_CHECK_TIME":                   "",
	"DISTRIBUTED_TRACING_ADDRESS":          "",
	"DISTRIBUTED_TRACING_INSTANCE_ID":      "",
	"DISTRIBUTED_TRACING_SAMPLING_RATE":    "",
	"DISTRIBUTED_TRACING_SERVICE_NAME":     "",
	"DOWNGRADE_CHECK_TIME":                 "",
	"ENABLE_DISTRIBUTED_TRACING":           "",
	"ENABLE_LEASE_CHECKPOINT":              "LeaseCheckpoint",
	"ENABLE_LEASE_CHECKPOINT_PERSIST":      "LeaseCheckpointPersist",
	"INITIAL_CORRUPT_CHECK":                "InitialCorruptCheck",
	"MEMORY_MLOCK":                         "",
	"PEER_SKIP_CLIENT_SAN_VERIFICATION":    "",
	"SNAPSHOT_CATCHUP_ENTRIES":             "",
	"STOP_GRPC_SERVICE_ON_DEFRAG":          "StopGRPCServiceOnDefrag",
	"TXN_MODE_WRITE_WITH_SHARED_BUFFER":    "TxnModeWriteWithSharedBuffer",
	"WARNING_APPLY_DURATION":               "",
	"WARNING_UNARY_REQUEST_DURATION":       "",
	"WATCH_PROGRESS_NOTIFY_INTERVAL":       "",
}

// Experimental is the first minor version that does not know these variables. The one before knows both names.
const Experimental = 7

// Replacement is the variable to set in place of one that etcd 3.7 does not know any more, and would ignore: with that
// part of its value, if there is one. It is empty for a variable that 3.7 knows, or no version ever did.
func Replacement(variable string) (name, value string) {
	rest, is := strings.CutPrefix(variable, "ETCD_EXPERIMENTAL_")
	gate, isGone := experimental[rest]
	switch {
	case !is || !isGone:
		return "", ""
	case gate != "":
		return "ETCD_FEATURE_GATES", gate
	}
	return "ETCD_" + rest, ""
}
