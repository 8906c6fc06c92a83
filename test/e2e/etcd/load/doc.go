// Package load is the load with which the etcd operator is shown to lose no acknowledged write.
//
// [Start] runs clients that write, read, compare-and-swap and delete keys of an etcd cluster
// while something else disturbs it. Every operation is recorded, with the time before it was
// sent and the time after its answer came. [Check] decides whether an etcd that never loses
// anything can have given these answers. [NewReport] says how long writes did not come through.
//
// # What makes the check both strict and fast
//
// Every value is written once, so a value that is read names the write that it is from. Every
// write and delete that is acknowledged also tells what it replaced, so every answer shows the
// whole state of a key.
//
// An operation without an answer may have been carried out, or be carried out any time later. If
// nobody ever sees its value, it changes nothing that is in the history, and is left out. If
// somebody sees it, it was carried out before that answer, with the revision that was seen.
//
// Keys are replaced by new ones every half minute, so that the histories of single keys, which
// are what the checker works on, stay short. The keys that are given up are read again at the end.
package load
