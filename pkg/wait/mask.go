package wait

import (
	"regexp"
	"strings"
)

const masked = "*****"

// Mask replaces what may be a credential in a text of Flux's or of the API server's: the value
// quoted by a validation error about a Secret, user information in a URL, bearer tokens, private
// keys. The controllers mask what they know to be secret; the API server echoes values verbatim.
func Mask(message string) string {
	if strings.HasPrefix(message, "dependency '") || strings.HasPrefix(message, "Applied revision: ") {
		return message // nearly all messages of a large graph, and made of names alone
	}
	lines := strings.Split(message, "\n")
	for i, line := range lines {
		if strings.Contains(line, "Secret/") || strings.Contains(line, `Secret "`) || strings.Contains(line, "Secret in version") {
			line = quotedValue.ReplaceAllString(line, `${1}"`+masked+`"`)
		}
		line = urlUser.ReplaceAllString(line, "${1}"+masked+"@")
		line = bearer.ReplaceAllString(line, "${1}"+masked)
		line = assigned.ReplaceAllString(line, "${1}"+masked)
		lines[i] = privateKey.ReplaceAllString(line, masked)
	}
	return strings.Join(lines, "\n")
}

// Patterns that never change.
var (
	quotedValue = regexp.MustCompile(`((?:Invalid|Duplicate|Unsupported|Required) value: )(?:"(?:[^"\\]|\\.)*"|\{.*\}|\[.*\]|[^\s,:]+)`)
	urlUser     = regexp.MustCompile(`([a-z][a-z0-9+.-]*://)[^/\s@"']+@`)
	bearer      = regexp.MustCompile(`(?i)(\b(?:bearer|basic) )[A-Za-z0-9+/=._~-]{8,}`)
	assigned    = regexp.MustCompile(`(?i)(\b(?:password|passwd|token|api[_-]?key|secret[_-]?key|access[_-]?key)(?:\s?=\s?|:\s|"\s?:\s?)["']?)[^\s"',;&]{4,}`)
	privateKey  = regexp.MustCompile(`AGE-SECRET-KEY-1[0-9A-Z]+|\bgh[a-z]_[A-Za-z0-9]{20,}|\bglpat-[A-Za-z0-9_-]{16,}`)
)
