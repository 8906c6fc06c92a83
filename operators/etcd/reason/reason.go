// Package reason has the reasons in status and in events of EtcdClusters that are not Kubernetes' own.
package reason

// All reasons.
const (
	Ready          = "Ready"
	Creating       = "Creating"
	Scaling        = "Scaling"
	Upgrading      = "Upgrading"
	Recovering     = "Recovering"
	RollingOut     = "RollingOut"
	Unavailable    = "MembersNotReady"
	NoQuorum       = "NoQuorum"
	NotReached     = "NoReadyAddress"
	QuorumLost     = "QuorumLost"
	Forgotten      = "StatusEmptied"
	Existing       = "ExistingMembers"
	Paused         = "Paused"
	InvalidVersion = "InvalidVersion"
	VersionRefused = "VersionRefused"
	NoSpace        = "DatabaseFull"
	QuotaRefused   = "QuotaRefused"
	DataDiffers    = "DataDiffers"
	VolumeGoes     = "VolumeBeingDeleted"
	Complaint      = "MemberReportsError"
	NoSecret       = "SecretNotFound"
	BadSecret      = "InvalidSecret"
	Serving        = "Serving"
	NotTrusted     = "CertificatesReplaced"
	Refused        = "AuthenticationRequired"
	Authenticating = "EnablingAuthentication"
	Restoring      = "Restoring"
	RestoreFailed  = "RestoreFailed"
	// PausedInRestore is an outage that lasts for as long as the cluster is paused.
	PausedInRestore = "PausedInRestore"

	// Of spec.joinFrom: under way, undone, and what keeps a running etcd from being joined.
	Joining         = "Joining"
	JoinUndone      = "JoinUndone"
	JoinUnreachable = "JoinUnreachable"
	JoinClusters    = "JoinDifferentClusters"
	JoinEndpoints   = "JoinEndpointMissing"
	JoinNames       = "JoinNameTaken"
	JoinUnhealthy   = "JoinNotHealthy"
	JoinAlarm       = "JoinAlarm"
	JoinVersion     = "JoinVersionRefused"
	JoinPeers       = "JoinPeersUnreachable"
	JoinRoom        = "JoinDatabaseTooLarge"
)
