// Package webserver is the WebServer operator: a web server that scales,
// upgrades with no failed request, rolls back by itself, and repairs whatever
// is changed behind its back.
//
// # The promise
//
//   - No change of a WebServer fails a request, as long as the new pods work:
//     a new pod is ready before an old one leaves, and one that leaves serves
//     on until nobody sends it requests any more.
//   - A revision that does not become healthy, that crash-loops soon after,
//     or whose configuration the server refuses, is rolled back, and is not tried
//     again until the pods' part of the spec, what it names, or the deadline
//     changes, or an annotation requests it.
//   - What a revision only waited for, such as a node, does not count against it.
//     If it waits for too long, it is rolled back, too, and tried again.
//   - Every field that the operator sets, and every child that it made, is
//     repaired. Fields that others set are left to them.
//   - A node port stays, also when the Service is created again.
//
// # How a rollout goes
//
// The pod template is a pure function of the spec and of its inputs: the
// ConfigMaps and the Secret that it names. Pods do not mount those but copies,
// immutable and named after their content (inputs.go), so a changed input is a
// changed template, and the revision before keeps what it started with.
//
//	              annotation template   ControllerRevision   status
//	A is good     A                     -                    lastGoodRevision A
//	spec has B    B                     A                    lastGoodRevision A
//	B is good     B                     A                    lastGoodRevision B
//	B fails       B                     A                    failedRollout B
//	rolled back   A                     A                    failedRollout B
//	spec has C    C                     A                    -
//	or: is time   B                     A                    failedRollout B, retryTime passed
//
// The Deployment has the template in force as an annotation, in the same write that
// changes its template, so no death of the operator can part them. Before that write,
// what was good goes into a ControllerRevision, as a StatefulSet's controller does it: a
// Deployment that is deleted is created again with the good one, and a rollout continues
// from there. That B failed is written into status first; the rollback to A follows from
// it, in a step of its own, by whichever operator leads then. Whether B failed is read
// from the Deployment's own progress deadline and from the pods. A clock of the
// operator's is needed only for the crash loop of a revision that was healthy, and where
// the Deployment's deadline does not run: see isLate in rollout.go. What the pods waited
// for meanwhile is told from their conditions and containers, so that nobody has to have
// watched them: see pending.go. When a revision that had no room is tried again is in
// status, with the verdict, and follows from that as the rollback does.
//
// # How children are written
//
// The kit's apply.Children has it: a POST first, later a server-side apply
// with the UID that was seen, nothing when nothing differs. A Deployment that
// another operator made under this very WebServer is taken over with its pod
// template as it is: see choose in decide.go. Templates look different from one
// version of the operator to the next; the one in force stays until the spec
// changes, so that an upgrade restarts no pod: see requestedTemplate in template.go.
//
// # Adoption
//
// What a user or a chart has made is taken over where spec.adopt and an annotation of theirs
// say so (adopt.go): one write of metadata for each object, on condition that it is as it was seen, once nothing
// would be lost with the next change (undescribed.go). From then on it is as with another
// operator's: the template stays until the spec changes. The first template after that
// replaces all of the old one, whoever has set it, and makes it the operator's
// (loop.ReplaceTemplate).
//
// # Ports
//
// The first WebServer without a port of its own gets 30010, as in the tutorial, while
// that is free. The API server decides which one is first: it refuses the port to all but
// one, and the others take what the API server gives. From then on the port is in status
// and stays (ports.go).
package webserver
