package load

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// Kind is what an operation does.
type Kind string

// The kinds of operations.
const (
	Read   Kind = "read"
	Write  Kind = "write"
	Swap   Kind = "swap"
	Delete Kind = "delete"
)

// changes says whether operations of this kind change something.
func (k Kind) changes() bool { return k != Read }

// Outcome is what became of an operation.
type Outcome string

// The outcomes of operations.
const (
	// Done says that etcd answered that it was carried out.
	Done Outcome = "done"
	// Differs says that etcd answered that the key was not at the revision that a swap expected.
	Differs Outcome = "differs"
	// Unknown says that no answer came: it may have been carried out, or be so any time later.
	Unknown Outcome = "unknown"
	// Refused says that it was not carried out, and never will be.
	Refused Outcome = "refused"
)

// Version is the state of a key. The zero value says that there is no such key.
type Version struct {
	Value string `json:"v,omitempty"`
	// Revision is that of the write of the value.
	Revision int64 `json:"r,omitempty"`
}

func (v Version) String() string {
	if v == (Version{}) {
		return "no value"
	}
	return fmt.Sprintf("%q of revision %d", v.Value, v.Revision)
}

// Op is an operation. Its times are since the start of the history, by a monotonic clock.
type Op struct {
	Client  int           `json:"c"`
	Kind    Kind          `json:"o"`
	Key     string        `json:"k"`
	Call    time.Duration `json:"t"`
	Return  time.Duration `json:"u"`
	Outcome Outcome       `json:"s"`
	// Value is what a write or swap writes. No other operation writes the same.
	Value string `json:"w,omitempty"`
	// Expect is the revision that the key has to have for a swap; 0 if there must be no such key.
	Expect int64 `json:"x,omitempty"`
	// Revision is the store's with the answer: for an operation that changed something, its own.
	Revision int64 `json:"r,omitempty"`
	// Seen is the state of the key before the operation.
	Seen Version `json:"p,omitzero"`
	// Final says that this is a read after the load has ended.
	Final bool `json:"f,omitempty"`
	// Error is why the outcome is unknown, or the operation was refused.
	Error string `json:"e,omitempty"`
}

// answered says whether etcd told the state of the key.
func (o *Op) answered() bool { return o.Outcome == Done || o.Outcome == Differs }

// acknowledged says whether etcd answered that it changed something. A delete of a key that
// does not exist changes nothing.
func (o *Op) acknowledged() bool {
	return o.Outcome == Done && (o.Kind == Write || o.Kind == Swap || o.Kind == Delete && o.Seen != Version{})
}

// after is the state of the key after an operation that was answered.
func (o *Op) after() Version {
	switch {
	case !o.acknowledged():
		return o.Seen
	case o.Kind == Delete:
		return Version{}
	default:
		return Version{o.Value, o.Revision}
	}
}

// String tells of the operation in plain words.
func (o *Op) String() string {
	what := map[Kind]string{
		Read:   "read",
		Write:  fmt.Sprintf("write of %q", o.Value),
		Swap:   fmt.Sprintf("swap of revision %d for %q", o.Expect, o.Value),
		Delete: "delete",
	}[o.Kind]
	if o.Final {
		what = "final read"
	}
	became := string(o.Outcome)
	switch {
	case o.Outcome == Differs:
		became = fmt.Sprintf("not swapped: found %s", o.Seen)
	case o.acknowledged():
		became = fmt.Sprintf("done as revision %d, replaced %s", o.Revision, o.Seen)
	case o.Outcome == Done:
		became = fmt.Sprintf("found %s at revision %d of the store", o.Seen, o.Revision)
	case o.Error != "":
		became += ": " + o.Error
	}
	return fmt.Sprintf("%s by client %d from %s to %s: %s", what, o.Client, seconds(o.Call), seconds(o.Return), became)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.4fs", d.Seconds()) }

// History is all operations of a load, in the order of their returns.
type History struct {
	// Start is when the times of the operations begin.
	Start time.Time
	Ops   []Op
}

// header is the first line of a history's file.
type header struct {
	Start time.Time `json:"start"`
	Ops   int       `json:"ops"`
}

// Save writes the history to a file, a line of JSON for each operation.
func (h History) Save(path string) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := bufio.NewWriter(f)
	enc := json.NewEncoder(w)
	if err := enc.Encode(header{h.Start, len(h.Ops)}); err != nil {
		return err
	}
	for i := range h.Ops {
		if err := enc.Encode(&h.Ops[i]); err != nil {
			return err
		}
	}
	return w.Flush()
}

// Open reads what Save wrote.
func Open(path string) (History, error) {
	f, err := os.Open(path)
	if err != nil {
		return History{}, err
	}
	defer f.Close()
	dec := json.NewDecoder(bufio.NewReader(f))
	var head header
	if err := dec.Decode(&head); err != nil {
		return History{}, fmt.Errorf("%s: the first line: %w", path, err)
	}
	h := History{Start: head.Start}
	for {
		var op Op
		err := dec.Decode(&op)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return History{}, fmt.Errorf("%s: operation %d: %w", path, len(h.Ops)+1, err)
		}
		h.Ops = append(h.Ops, op)
	}
	if len(h.Ops) != head.Ops {
		return History{}, fmt.Errorf("%s has %d operations, and its first line says %d: the file was cut off", path, len(h.Ops), head.Ops)
	}
	return h, nil
}
