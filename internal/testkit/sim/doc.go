// Package sim is a simulated Kubernetes API server, in memory and deterministic.
package sim
