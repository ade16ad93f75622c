package report

import (
	"regexp"
	"strings"
)

// veil hides the lines of a document that holds secrets, except those that say what it is. What a
// Secret holds is shown nowhere, although it is there to read in git: reports travel further.
type veil struct {
	secret bool
	// below is the indentation of the block whose lines are hidden; -1 outside of one.
	below int
}

var (
	// kindSecret is how a document says that it is a Secret.
	kindSecret = regexp.MustCompile(`kind["']?\s*:\s*["']?Secret(?:List)?\b`)
	// plain is a line that only says what the document is.
	plain = regexp.MustCompile(`^(?:apiVersion|kind|metadata|name|namespace):(?: *[\w./-]*| *\{(?: *(?:name|namespace): *[\w.-]+ *,?)+\})$`)
)

// newVeil looks at the document around a line, which counts from 1.
func newVeil(lines []string, at int) *veil {
	at = min(at, len(lines))
	begin, end := at-1, at
	for begin > 0 && strings.TrimSpace(lines[begin]) != "---" {
		begin--
	}
	for end < len(lines) && strings.TrimSpace(lines[end]) != "---" {
		end++
	}
	return &veil{secret: holdsSecrets(strings.Join(lines[begin:end], "\n")), below: -1}
}

// holdsSecrets reports whether a document is a Secret, makes one, or holds ciphertext. Most documents
// do not even have the word, and the expression is slow on large ones.
func holdsSecrets(text string) bool {
	return strings.Contains(text, "secretGenerator") || strings.Contains(text, "ENC[AES256_GCM") ||
		strings.Contains(text, "Secret") && kindSecret.MatchString(text)
}

// hides reports whether a line is not to be shown. It must be asked about one line after the other.
func (v *veil) hides(line string) bool {
	if !v.secret {
		return false
	}
	content := strings.TrimLeft(line, " ")
	indent := len(line) - len(content)
	if v.below >= 0 && indent > v.below {
		return true
	}
	v.below = -1
	if !plain.MatchString(strings.TrimRight(content, " \t\r")) {
		v.below = indent
		return true
	}
	return false
}
