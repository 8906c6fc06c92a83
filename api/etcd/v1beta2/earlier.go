package v1beta2

import (
	"encoding/json"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// This file is about fields of status that had other names before 0.1.0, the first release with these kinds. It goes
// with 0.2.0, which nobody upgrades to from the commits before. The CRDs have the earlier names, so that the API server
// does not drop what is stored by them, and whoever reads an object has it by the names of today: an operator then
// writes the status anew (Renamed), which has no earlier names.

// EarlierClusterStatus has the earlier names of fields.
type EarlierClusterStatus struct {
	// Renamed is true of a status that was read with a field by its earlier name. It is not stored.
	Renamed bool `json:"-"`
	// made is now memberNamesUsed.
	// +optional
	EarlierMade int64 `json:"made,omitempty"`
	// adding is now memberBeingAdded.
	// +optional
	EarlierAdding string `json:"adding,omitempty"`
	// changing is now memberBeingUpdated.
	// +optional
	EarlierChanging string `json:"changing,omitempty"`
	// prepared is now dataPreparedFor.
	// +optional
	EarlierPrepared string `json:"prepared,omitempty"`
}

// EarlierRestoring has the earlier names of fields.
type EarlierRestoring struct {
	// seedData is now seedDataUID.
	// +optional
	EarlierSeedData string `json:"seedData,omitempty"`
}

// EarlierRestored has the earlier names of fields.
type EarlierRestored struct {
	// failed is now failureMessage.
	// +optional
	EarlierFailed string `json:"failed,omitempty"`
	// kept is now keptPersistentVolumeClaims.
	// +optional
	// +listType=atomic
	EarlierKept []string `json:"kept,omitempty"`
}

// EarlierRestoreStatus has the earlier names of fields.
type EarlierRestoreStatus struct {
	// Renamed is true of a status that was read with a field by its earlier name. It is not stored.
	Renamed bool `json:"-"`
	// kept is now keptPersistentVolumeClaims.
	// +optional
	// +listType=atomic
	EarlierKept []string `json:"kept,omitempty"`
}

// EarlierBackupStatus has the earlier names of fields.
type EarlierBackupStatus struct {
	// Renamed is true of a status that was read with a field by its earlier name. It is not stored.
	Renamed bool `json:"-"`
	// last is now lastBackup.
	// +optional
	EarlierLast *StoredBackup `json:"last,omitempty"`
	// stored is now storedBackups.
	// +optional
	EarlierStored *int32 `json:"stored,omitempty"`
	// retained is now retainedBackups.
	// +optional
	EarlierRetained int32 `json:"retained,omitempty"`
	// lastTry is now lastTryTime.
	// +optional
	EarlierLastTry *metav1.Time `json:"lastTry,omitempty"`
	// pruned is now prunedAfter.
	// +optional
	EarlierPruned int64 `json:"pruned,omitempty"`
}

// EarlierBackupTry has the earlier names of fields.
type EarlierBackupTry struct {
	// secrets is now secretsHash.
	// +optional
	EarlierSecrets string `json:"secrets,omitempty"`
}

// EarlierBackupFailure has the earlier names of fields.
type EarlierBackupFailure struct {
	// secrets is now secretsHash.
	// +optional
	EarlierSecrets string `json:"secrets,omitempty"`
	// passes is now retriable.
	// +optional
	EarlierPasses bool `json:"passes,omitempty"`
}

// UnmarshalJSON reads a status also by the earlier names of its fields.
func (st *EtcdClusterStatus) UnmarshalJSON(data []byte) error {
	type plain EtcdClusterStatus
	if err := json.Unmarshal(data, (*plain)(st)); err != nil {
		return err
	}
	moved := []bool{
		move(&st.EarlierMade, &st.MemberNamesUsed), move(&st.EarlierAdding, &st.MemberBeingAdded),
		move(&st.EarlierChanging, &st.MemberBeingUpdated), move(&st.EarlierPrepared, &st.DataPreparedFor),
	}
	if r := st.Restoring; r != nil {
		moved = append(moved, move(&r.EarlierSeedData, &r.SeedDataUID))
	}
	if r := st.Restored; r != nil {
		moved = append(moved, move(&r.EarlierFailed, &r.FailureMessage), move(&r.EarlierKept, &r.KeptPersistentVolumeClaims))
	}
	st.Renamed = slices.Contains(moved, true)
	return nil
}

// UnmarshalJSON reads a status also by the earlier names of its fields.
func (st *BackupStatus) UnmarshalJSON(data []byte) error {
	type plain BackupStatus
	if err := json.Unmarshal(data, (*plain)(st)); err != nil {
		return err
	}
	moved := []bool{
		move(&st.EarlierLast, &st.LastBackup), move(&st.EarlierStored, &st.StoredBackups), move(&st.EarlierRetained, &st.RetainedBackups),
		move(&st.EarlierLastTry, &st.LastTryTime), move(&st.EarlierPruned, &st.PrunedAfter),
	}
	if r := st.Running; r != nil {
		moved = append(moved, move(&r.EarlierSecrets, &r.SecretsHash))
	}
	if f := st.LastFailure; f != nil {
		moved = append(moved, move(&f.EarlierSecrets, &f.SecretsHash), move(&f.EarlierPasses, &f.Retriable))
	}
	st.Renamed = slices.Contains(moved, true)
	return nil
}

// UnmarshalJSON reads a status also by the earlier names of its fields.
func (st *RestoreStatus) UnmarshalJSON(data []byte) error {
	type plain RestoreStatus
	if err := json.Unmarshal(data, (*plain)(st)); err != nil {
		return err
	}
	st.Renamed = move(&st.EarlierKept, &st.KeptPersistentVolumeClaims)
	return nil
}

// move moves a value to the field of today, and says whether there was one.
func move[T any](from, to *T) bool {
	var none T
	if reflect.ValueOf(from).Elem().IsZero() {
		return false
	}
	if reflect.ValueOf(to).Elem().IsZero() {
		*to = *from
	}
	*from = none
	return true
}
