package agent

import "context"

// Main does the task in the only argument, reports its result, and returns the exit code.
func Main(ctx context.Context, args []string) int {
	return 0
}
