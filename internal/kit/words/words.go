// Package words has what programs do with text that have no conditions, too.
package words

import "strings"

// Capitalized begins with a capital letter.
func Capitalized(text string) string {
	if text == "" {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}
