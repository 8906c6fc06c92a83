// Package starter is the program that waits in a pod for an instant, and then becomes the command (spec.prepare:
// Process):
//
//	fairlead-at-start install FILE
//	FILE --at INSTANT [--message FILE] [-- COMMAND [ARG...]]
//
// The first form runs in an init container of Fairlead's image, and copies the program to where the second form finds
// it in the command's container, of which nothing else is needed, not even a shell. It becomes the command by exec: the
// process, its signals, its exit code and its output are the command's. Without a command it ends with exit code 0 at
// the instant: it stands in for the containers of a pod that is to find a node (spec.prepare: Node).
//
// The pod's annotation that withdraws it is in the environment ([Withdrawn]), as it was when the container was created.
// If it is set, the program ends at once: so a pod that gets its node after it was withdrawn does no harm. The command
// does not get the variable.
//
// # Whether the command has begun
//
// At most one end of such a container is an attempt, and the operator has to know which. So the termination message
// says [NotBegun] as long as the program waits, and is emptied before the command can begin: a container that ended
// with that message has certainly not run the command, whatever signal has ended it. What ended with any other message
// is taken for the command's end, also where the message could not be written. Only an end that the node makes up
// proves nothing: a node that fails may lose the last writes to a file.
//
// # The instant
//
// The clock that counts is the node's, read as the time of day, as the slowest of its readers sees it: a tick of the
// kernel behind. It may be set at any time, so it is read again after naps that become shorter as the instant comes
// near: the command does not begin before the clock shows the instant, and after a jump over the instant it begins when
// the nap ends, a second later at most.
package starter
