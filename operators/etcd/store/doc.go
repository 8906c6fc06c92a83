// Package store is the storage of backups: S3, Google Cloud Storage, Azure Blob Storage, and a
// volume. It is for the agent: the operator has only the names of it, in package task.
//
// # Complete or absent
//
// In the clouds an upload is in parts that nobody sees until it is completed, and it is completed only
// if the reader came to its end. In a volume it is a file of another name, that is renamed when it is on
// the disk. What an upload leaves that was killed is removed by [Store.Tidy] in S3 and in volumes, and
// by the cloud itself in a week elsewhere.
//
// # Whose it is
//
// The owner is in the object's metadata. An object of another owner, or of none, is neither replaced nor
// deleted, whatever it is called. That none is there is a condition of the write itself (If-None-Match),
// so that of two who write the same key at once, one is told. S3 that does not know conditions and
// says so is asked just before. In a volume there is a lock, where the file system has locks.
//
// # Silence
//
// There is no limit to how long an upload may take, but one to how long the storage may be silent:
// bytes are counted on the connections, below TLS and the libraries. While the reader of an upload
// is waited for, the storage is not blamed.
//
// # Memory
//
// Parts have 8 MiB, and two are sent at once. To store 1 GiB in S3 takes 38 MiB of memory; see
// TestMemory.
//
// # Credentials
//
// They are read from the files of the mounted Secret, and if there is one, from nowhere else. Every
// message is scrubbed of them, in case a server repeats them.
package store
