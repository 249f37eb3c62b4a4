package spec

import (
	"strings"

	"github.com/google/uuid"
)

// Key is a component's key as a server gives it back: one that reads as a UUID
// in its canonical form, any other as it is (SpecKey of
// crates/propolis-api-types-versions, which reads the forms of Rust's uuid).
func Key(s string) string {
	switch len(s) {
	case len("{00000000-0000-0000-0000-000000000000}"):
		if s[0] != '{' || s[len(s)-1] != '}' {
			return s
		}
	case len("urn:uuid:00000000-0000-0000-0000-000000000000"):
		if !strings.HasPrefix(s, "urn:uuid:") {
			return s
		}
	}
	if id, err := uuid.Parse(s); err == nil {
		return id.String()
	}
	return s
}
