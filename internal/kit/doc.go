// Package kit is what the operators share, and nothing that only one of them
// needs:
//
//	loop         observe, decide, write, report: the reconciler of every kind
//	run          one manager for one or several operators
//	steps        the steps of a kind, as values that are added up
//	apply        writing children without touching what is foreign
//	status       conditions
//	metrics      what Prometheus reads, and the page about it
//	names        names and label values within their bounds
//	podsecurity  pods that meet the restricted Pod Security Standard
//	pods         what keeps pods from starting, in words; services, disruption, contents, podtemplate, outside and walltime are
//	             about one thing each, as their names say
package kit
