//go:build apiserver && !race

package agent

// mostMiB is how much memory of its own an agent may have.
const mostMiB = 64
