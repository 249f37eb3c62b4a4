package agent

import (
	"crypto/tls"
	"errors"
	"testing"
)

// Over TCP no client is admitted without credentials, unless the operator says
// so: tokens do on the loopback, and certificates everywhere.
func TestListenRefusesWhereClientsAreNotToldApart(t *testing.T) {
	tokens := Tokens{{}: reader}
	for name, c := range map[string]struct {
		at      string
		secure  *tls.Config
		access  Access
		exposed bool
	}{
		"the loopback":                 {"127.0.0.1:0", nil, Access{}, true},
		"the loopback, with tokens":    {"127.0.0.1:0", nil, Access{Tokens: tokens}, false},
		"the loopback, for all":        {"127.0.0.1:0", nil, Access{Open: true}, false},
		"the loopback, certificates":   {"127.0.0.1:0", &tls.Config{}, Access{}, false},
		"everywhere":                   {"0.0.0.0:0", nil, Access{}, true},
		"everywhere, with tokens":      {"0.0.0.0:0", nil, Access{Tokens: tokens}, true},
		"everywhere, for all":          {"0.0.0.0:0", nil, Access{Open: true}, false},
		"everywhere, certificates":     {"0.0.0.0:0", &tls.Config{}, Access{}, false},
		"the loopback, names that may": {"127.0.0.1:0", nil, Access{Operators: []string{"op"}}, true},
	} {
		l, err := Listen(t.Context(), Address{Network: "tcp", Name: c.at}, c.secure, c.access)
		if err == nil {
			l.Close()
		}
		if exposed := errors.As(err, new(*ExposedError)); exposed != c.exposed || !exposed && err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
