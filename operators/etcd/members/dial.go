package members

import "crypto/tls"

// Dial is a Connect.
func Dial(*tls.Config) (Client, error) { panic("wip") }
