package failure

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/sled/base"
	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/sled/network"
	"github.com/sledctl/sledctl/sled/reap"
	"github.com/sledctl/sledctl/sled/storage"
)

// Every kind of error comes with a hint, also if its type has none. Exceptions are
// the differences, which are no failure, an interruption before the first change, and
// a wrong command line, whose hint names the command.
func TestEachKindHasAHint(t *testing.T) {
	for kind, code := range codes() {
		d := Of(fmt.Errorf("do it: %w", fault.New(kind, "no")), time.Now())
		if d.Exit != code {
			t.Errorf("%v: exit %d, want %d", kind, d.Exit, code)
		}
		if want := kind != fault.Differences && kind != fault.Trouble && kind != fault.Interrupted && kind != fault.Usage; want != (d.Hint != "") {
			t.Errorf("%v: hint %q", kind, d.Hint)
		}
	}
}

// A hint about bundles ends with the command that gets them, as other hints do.
func TestTheHintAboutBundlesEndsWithItsCommand(t *testing.T) {
	const one = "/pool/ext/1/crypt/debug/bundle/zone/z1/20250301T120000.000Z-start-6f9619ff.tar.gz"
	for want, d := range map[string]Document{
		"": {},
		"to read what its zone could tell, run: sledctl zone bundle get 20250301T120000.000Z-start-6f9619ff 20250301T120000.000Z-start-6f9619ff.tar.gz": {Bundles: []string{one}},
		"to list the 2 bundles of what the zones could tell, run: sledctl zone bundle list":                                                             {Bundles: []string{one, one}},
	} {
		if got := d.bundleHint(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Errors that an operator meets name the command that comes next.
func TestAHintNamesTheNextCommand(t *testing.T) {
	for _, c := range []struct {
		err  error
		exit int
		want string
	}{
		{errors.New("zfs: out of space"), ExitFailed, "run the same command again"},
		{WithReport(errors.New("no"), operation.Report{ID: "7f96"}), ExitFailed, "sledctl trace 7f96"},
		{&instance.PartialError{Of: 3, Failures: []instance.Failure{{Name: "web1", Err: errors.New("no")}, {Name: "web2", Err: fault.New(fault.Conflict, "no")}}}, ExitPartial, "run the command again"},
		{&record.NotFoundError{Name: "web1"}, ExitNotFound, "sledctl instance list"},
		{&record.InputError{Field: "disk", Absent: true}, ExitNotFound, "choose one that exists"},
		{&storage.UnknownError{Word: "c1"}, ExitNotFound, "sledctl storage list"},
		{ledger.ErrNoCopy, ExitNotFound, "sledctl ledger check"},
		{&instance.NameTakenError{Name: "web1"}, ExitConflict, "sledctl instance list"},
		{&instance.DiskTakenError{Path: "/x"}, ExitConflict, "sledctl instance list -o json"},
		{&instance.ConflictError{Name: "web1", Recreate: true}, ExitConflict, "--recreate"},
		{&network.ExistsError{}, ExitConflict, "sledctl vnic list"},
		{&storage.ConflictError{}, ExitConflict, "sledctl storage check"},
		{&operation.LockedError{Subject: "instance/1"}, ExitLocked, "--wait"},
		{&TimeoutError{Limit: time.Second, Err: errors.New("no")}, ExitDeadline, "--timeout"},
		{&plan.LimitError{}, ExitDeadline, "--timeout does not change"},
		{host.ErrPrivileges, ExitRefused, "pfexec sledctl"},
		{host.ErrNoCommand, ExitRefused, "host.command_path"},
		{instance.ErrNoPool, ExitRefused, "sledctl bootstrap"},
		{&base.NotPreparedError{}, ExitRefused, "sledctl bootstrap"},
		{&base.NeededError{}, ExitRefused, "sledctl base list"},
		{&reap.NeededError{}, ExitRefused, "sledctl zone list"},
		{&network.ForeignError{}, ExitRefused, "dladm show-vnic"},
		{&operation.OutcomeError{Err: errors.New("no")}, ExitLedger, "sledctl ledger check"},
	} {
		if d := Of(c.err, time.Now()); d.Exit != c.exit || !strings.Contains(d.Hint, c.want) {
			t.Errorf("%T %v: exit %d, hint %q; want %d, %q", c.err, c.err, d.Exit, d.Hint, c.exit, c.want)
		}
	}
}

// The hint of one instance names it; that of several does not name one of them only,
// and nobody is sent to run a command again for a name that does not exist.
func TestAHintForSeveralInstances(t *testing.T) {
	protected := func(name string) instance.Failure {
		return instance.Failure{Name: name, Err: &instance.ProtectedError{Name: name}}
	}
	absent := func(name string) instance.Failure {
		return instance.Failure{Name: name, Err: &record.NotFoundError{Name: name}}
	}
	broken := func(name string) instance.Failure {
		return instance.Failure{Name: name, Err: fmt.Errorf("zone of %s: no space", name)}
	}
	const (
		unprotect = "to delete it all the same, add --yes; to remove the protection, run: sledctl instance ensure "
		list      = "to list the instances, run: sledctl instance list"
		reason    = "; for the reason, run: sledctl instance get NAME"
	)
	for name, c := range map[string]struct {
		of       int
		failures []instance.Failure
		want     string
	}{
		"one is protected":              {3, []instance.Failure{protected("web1")}, unprotect + "web1 --no-protect"},
		"some are protected":            {3, []instance.Failure{protected("web1"), protected("web2")}, unprotect + "NAME --no-protect"},
		"all are protected":             {2, []instance.Failure{protected("web1"), protected("web2")}, unprotect + "NAME --no-protect"},
		"one does not exist":            {2, []instance.Failure{absent("web8")}, list},
		"some do not exist":             {3, []instance.Failure{absent("web8"), absent("web9")}, list},
		"none exists":                   {2, []instance.Failure{absent("web8"), absent("web9")}, list},
		"one fails, one does not exist": {3, []instance.Failure{broken("web1"), absent("web9")}, "to retry those that exist, run the command again without the other names" + reason},
		"one fails":                     {3, []instance.Failure{broken("web1")}, "to retry these, run the command again" + reason},
		"one fails, one is protected":   {2, []instance.Failure{broken("web1"), protected("web2")}, "to retry these, run the command again" + reason},
	} {
		if got := Of(&instance.PartialError{Of: c.of, Failures: c.failures}, time.Now()).Hint; got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
