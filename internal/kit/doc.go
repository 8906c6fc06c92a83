// Package kit is what the operators share, and nothing that only one of them
// needs:
//
//	run          one manager for one or several operators
//	apply        writing children without touching what is foreign
//	status       conditions and the status write
//	names        names and label values within their bounds
//	podsecurity  pods that meet the restricted Pod Security Standard
//	testkit      a real API server for tests, and the crash-point sweep
package kit
