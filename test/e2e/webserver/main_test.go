//go:build e2e

package webserver

import (
	"os"
	"testing"

	"example.com/fairlead/test/e2e"
)

func TestMain(m *testing.M) { os.Exit(e2e.Run(m)) }
