package volume_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/engine/operation/operationtest"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sled/volume"
	"github.com/sledctl/sledctl/test/hosttest"
)

// bench is a simulated sled whose only pool is rpool.
type bench struct {
	*testing.T
	env operation.Env
	has map[string][]string
}

func newBench(t *testing.T) *bench {
	t.Helper()
	s := sim.New(sim.Options{M2: -1, U2: -1}, hosttest.Files)
	t.Cleanup(s.Close)
	return &bench{T: t, env: operationtest.New(t, s.Host()), has: map[string][]string{}}
}

func (b *bench) settings() volume.Settings {
	return volume.Settings{Namespace: naming.NamespaceID("test"), Attached: func(ledger.View) (map[string][]string, error) { return b.has, nil }}
}

func (b *bench) run(argv ...string) string {
	b.Helper()
	r, err := b.env.Host.Run(b.Context(), host.Command{Program: argv[0], Args: argv[1:]})
	if err != nil || r.Exit != 0 {
		b.Fatalf("%q: %v, exit %d, %s", argv, err, r.Exit, r.Stderr)
	}
	return string(r.Stdout)
}

func (b *bench) create(want volume.Wanted) (volume.Status, error) {
	b.Helper()
	made, _, err := b.settings().Create(b.Context(), b.env, want, false, false)
	return made, err
}

// One quota above the volumes bounds them, and the error names it.
func TestAQuotaBoundsVolumes(t *testing.T) {
	b := newBench(t)
	b.run("zfs", "set", "quota=3G", "rpool")
	if _, err := b.create(volume.Wanted{Name: "a", Size: 1 << 30}); err != nil {
		t.Fatal(err)
	}
	b.has["rpool/volume_a"] = []string{"web1"}
	_, err := b.create(volume.Wanted{Name: "b", Size: 2 << 30})
	full, ok := errors.AsType[*volume.SpaceError](err)
	if !ok || full.Quota != "rpool" || !strings.Contains(err.Error(), "volume a (instance web1) 1G") {
		t.Errorf("%v", err)
	}
	if all, err := volume.All(operationtest.View(b, b.env)); err != nil || len(all) != 1 {
		t.Errorf("on record: %+v, %v", all, err)
	}
}

// A name that a renamed volume had is another volume's afterwards, with an id of its own.
func TestANameIsFreeAfterARename(t *testing.T) {
	b := newBench(t)
	first, err := b.create(volume.Wanted{Name: "a", Size: 1 << 20, Thin: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.settings().Change(b.Context(), b.env, volume.ChangeRequest{Verb: "volume rename", Ref: "a", Name: "b"}); err != nil {
		t.Fatal(err)
	}
	second, err := b.create(volume.Wanted{Name: "a", Size: 1 << 20, Thin: true})
	if err != nil || second.ID == first.ID {
		t.Errorf("%+v, was %+v, %v", second, first, err)
	}
	if r, err := volume.Find(operationtest.View(b, b.env), first.ID); err != nil || r.Name != "b" || r.Dataset != "rpool/volume_b" {
		t.Errorf("%+v, %v", r, err)
	}
}

// What a volume was before another program made one of its name is not the volume.
func TestAnotherVolumeOfTheNameIsNotTouched(t *testing.T) {
	b := newBench(t)
	if _, err := b.create(volume.Wanted{Name: "a", Size: 1 << 20}); err != nil {
		t.Fatal(err)
	}
	b.run("zfs", "destroy", "rpool/volume_a")
	b.run("zfs", "create", "-sV", "1M", "rpool/volume_a")
	size := uint64(2 << 20)
	_, _, grow := b.settings().Change(b.Context(), b.env, volume.ChangeRequest{Verb: "volume resize", Ref: "a", Size: &size})
	_, _, remove := b.settings().Delete(b.Context(), b.env, volume.DeleteRequest{Ref: "a", Yes: true})
	_, create := b.create(volume.Wanted{Name: "a", Size: 1 << 20})
	for _, err := range []error{grow, remove, create} {
		if taken, ok := errors.AsType[*volume.TakenError](err); !ok || taken.Marked {
			t.Errorf("%v", err)
		}
	}
}
