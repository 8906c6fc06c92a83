//go:build apiserver && race

package agent

// mostMiB is far more than an agent has: the race detector remembers who has used each byte.
const mostMiB = 1024
