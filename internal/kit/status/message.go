package status

import "strings"

// longest bounds, in bytes, what is taken over from other components.
const longest = 1024

// Shortened bounds a message from elsewhere and makes it one line.
func Shortened(message string) string {
	message = strings.Join(strings.Fields(message), " ")
	if len(message) > longest {
		message = strings.ToValidUTF8(message[:longest], "") + " …"
	}
	return message
}
