package cli

import (
	"context"
	"testing"

	"github.com/sledctl/sledctl/engine/ledger"
)

// Who opens the ledger may be warned meanwhile, as of copies of the configuration
// that differ, and does not wait for itself.
func TestOpeningTheLedgerMayWarn(t *testing.T) {
	var told []string
	b := &book{tell: func(err error) { told = append(told, err.Error()) }, scripted: func() bool { return false }}
	b.open = func(context.Context) (*ledger.Ledger, ledger.View, error) {
		b.warn("config.toml: differs")
		return nil, ledger.View{}, ledger.ErrAbsent
	}
	if _, _, err := b.get(t.Context()); err == nil || len(told) != 1 {
		t.Errorf("%v, told %q", err, told)
	}
}
