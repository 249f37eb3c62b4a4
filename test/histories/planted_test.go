package histories

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/sledctl/sledctl/host"
)

// The test of the test: a sledctl with a defect, and a model that is wrong, are
// found by a few stories, and the report of them is as short as it can be.

// deaf is a host on which some commands that sledctl runs are lost, as if sledctl had
// forgotten to run them.
type deaf struct {
	host.Host
	lost func(host.Command) bool
}

func (d deaf) Run(ctx context.Context, c host.Command) (host.Result, error) {
	if d.lost(c) {
		return host.Result{}, nil
	}
	return d.Host.Run(ctx, c)
}

// blind is a host of which sledctl overlooks zones with their datasets, when it
// adopts: by these alone it would take them over.
type blind struct{ host.Host }

func (b blind) Run(ctx context.Context, c host.Command) (host.Result, error) {
	r, err := b.Host.Run(ctx, c)
	if c.Program == "zoneadm" && c.Args[0] == "list" || c.Program == "zfs" && c.Args[0] == "get" {
		lines := slices.DeleteFunc(strings.SplitAfter(string(r.Stdout), "\n"), func(line string) bool { return strings.Contains(line, "propolis_instance_") })
		r.Stdout = []byte(strings.Join(lines, ""))
	}
	return r, err
}

func overlooks(p *player) {
	p.behind = func(v verb, h host.Host) host.Host {
		if v.word == "adopt --all" {
			return blind{h}
		}
		return h
	}
}

func TestPlantedDefectsAreFoundAndMadeShort(t *testing.T) {
	if testing.Short() {
		t.Skip(unraced)
	}
	lost := func(program string, words ...string) func(*player) {
		return func(p *player) {
			p.behind = func(_ verb, h host.Host) host.Host {
				return deaf{h, func(c host.Command) bool {
					return c.Program == program && strings.HasPrefix(strings.Join(c.Args, " "), strings.Join(words, " "))
				}}
			}
		}
	}
	for name, c := range map[string]struct {
		plant func(*player)
		first uint64   // story; the ledger is not lost in each
		acts  []string // what it comes down to
		says  string
	}{
		"VNICs are left":        {lost("dladm", "delete-vnic"), 0, []string{"ensure"}, "vnic_propolis"},
		"adopt overlooks zones": {overlooks, 16, []string{"ensure", "lose"}, "exit 8"},
		"a model that is wrong": {func(p *player) { p.model.careless = true }, 0, []string{"ensure", "ensure"}, "exit 5"},
	} {
		t.Run(name, func(t *testing.T) {
			root := prepareOnce(t, plain())
			c.plant(root)
			var played counts
			for number := range uint64(50) {
				bad := root.story(t, c.first+number, &played)
				if bad == nil {
					continue
				}
				short, log := shrink(t, root, bad)
				t.Logf("after %d histories, of %d acts %d are left:\n\t%s", played.histories.Load(), len(bad.acts), len(short.acts), strings.Join(log, "\n\t"))
				if len(short.acts) != len(c.acts) || !strings.Contains(short.err.Error(), c.says) {
					t.Errorf("%v\n%s", short.err, script(short.acts, root.row))
				}
				for i, word := range c.acts {
					if i < len(short.acts) && cmp.Or(short.acts[i].verb.word, short.acts[i].hand) != word {
						t.Errorf("act %d is %+v, want %s", i, short.acts[i], word)
					}
				}
				return
			}
			t.Errorf("nothing was found in %d histories", played.histories.Load())
		})
	}
}
