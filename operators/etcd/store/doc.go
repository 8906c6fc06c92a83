// Package store is the storage of backups: S3, Google Cloud Storage, Azure Blob Storage, and a
// volume. It is used in pods ([Open]), and by the operator for what needs no storage ([PlaceOf]).
package store
