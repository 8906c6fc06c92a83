package cli

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// Consent is the flag --yes.
type Consent struct{ isSure bool }

// AddTo adds the flag to a command.
func (s *Consent) AddTo(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&s.isSure, "yes", "y", false, "Do it without asking")
}

// Confirm says what will happen, and returns nil if the user wants it: with --yes, or by the
// answer on a terminal.
func (c *CLI) Confirm(s Consent, what string) error {
	if s.isSure {
		_, err := fmt.Fprintln(c.ErrOut, what)
		return err
	}
	in, isFile := c.In.(*os.File)
	if !isFile || !term.IsTerminal(int(in.Fd())) {
		return fmt.Errorf("%s Nothing was done: there is no terminal to ask on; add --yes if that is intended", what)
	}
	if _, err := fmt.Fprintf(c.ErrOut, "%s\nContinue? [y/N] ", what); err != nil {
		return err
	}
	answer, err := bufio.NewReader(in).ReadString('\n')
	if err != nil {
		return errors.New("nothing was done: there was no answer")
	}
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer != "y" && answer != "yes" {
		return errors.New("nothing was done")
	}
	return nil
}
