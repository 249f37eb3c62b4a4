package reap

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/sled/reap"
)

func object(kind, name string, verdict reap.Verdict, result, reason string) shownObject {
	o := shownObject{Result: result}
	o.Kind, o.Name, o.Verdict, o.Reason = kind, name, verdict, reason
	return o
}

func TestScreen(t *testing.T) {
	const zone = "propolis_instance_24aeb7a7-1423-547d-9529-254a2c5ef7d2"
	const pool = "oxp_6eb758c7-ee2e-4e47-ae36-2884c421fb31"
	of := func(instance string) string {
		return "left by instance ensure of instance " + instance + ", which did not end"
	}
	killed := of("ci9")
	dataset := pool + "/crypt/zone/" + zone
	for name, c := range map[string]struct {
		objects []shownObject
		foreign int
		dry     bool
		want    string
	}{
		"nothing is there": {nil, 0, true, "nothing to remove\n"},
		"equal reasons are printed once": {
			[]shownObject{
				object("zone", zone, reap.Orphan, resultToRemove, killed),
				object("zone", "propolis_base_1", reap.InUse, "", "base of a pool"),
				object("vnic", "vnic_propolis40", reap.Orphan, resultToRemove, killed),
				object("vnic", "vnic_propolis41", reap.Orphan, resultToRemove, killed),
				object("vnic", "vnic_propolis42", reap.Held, "", "until then"),
			}, 5, true, `3 to remove, 1 in use, 1 held, 5 of others

zone        propolis_instance_24aeb7a7-1423-547d-9529-254a2c5ef7d2
            orphan, to remove: left by unfinished instance ensure of ci9
vnic        2, for the same reason
            vnic_propolis40 vnic_propolis41

sledctl reap removes what is to be removed; --all-objects lists all 5
`,
		},
		"what several left that were killed is a group, and a long name is not broken": {
			[]shownObject{
				object("vnic", "vnic_propolis40", reap.Orphan, resultToRemove, of("ci9")),
				object("vnic", "vnic_propolis41", reap.Orphan, resultToRemove, of("ci10")),
				object("dataset", dataset, reap.Orphan, resultToRemove, of("ci10")),
				object("dataset", dataset+"/a", reap.Orphan, resultToRemove, of("ci9")),
				object("dataset", "rpool/a", reap.Orphan, resultToRemove, of("ci9")),
				object("directory", "/a", reap.Orphan, resultToRemove, of("ci9")),
				object("directory", "/b", reap.Orphan, resultToRemove, "nothing needs it"),
			}, 0, true, `7 to remove

vnic        2, orphan, to remove: left by unfinished instance ensure of ci10 ci9
            vnic_propolis40 vnic_propolis41
dataset     3, for the same reason
  oxp_6eb758c7/crypt/zone/propolis_instance_24aeb7a7-1423-547d-9529-254a2c5ef7d2
  oxp_6eb758c7/crypt/zone/
  propolis_instance_24aeb7a7-1423-547d-9529-254a2c5ef7d2/a
            rpool/a
directory   /a
            orphan, to remove: left by unfinished instance ensure of ci9
directory   /b
            orphan, to remove: nothing needs it

sledctl reap removes what is to be removed; --all-objects lists all 7
`,
		},
		"what cannot be judged is shown": {
			[]shownObject{object("zone", "propolis_base_1", reap.Unknown, "", "its root cannot be seen: pool "+pool+" is UNAVAIL")}, 0, true,
			`nothing to remove, 1 to look at

zone        propolis_base_1
            unknown: its root cannot be seen: pool oxp_6eb758c7 is UNAVAIL

--all-objects lists all 1
`,
		},
		"a name that has no room behind its kind is whole, below its reason": {
			[]shownObject{object("dataset", "oxp_343b36ca/crypt/zone/propolis_instance_090b6bb1-9a09-5c47-a527-f24ec977e67b", reap.Orphan, resultToRemove, killed)}, 0, true, `1 to remove

dataset     orphan, to remove: left by unfinished instance ensure of ci9
  oxp_343b36ca/crypt/zone/propolis_instance_090b6bb1-9a09-5c47-a527-f24ec977e67b

sledctl reap removes what is to be removed; --all-objects lists all 1
`,
		},
		"a reap says what it did": {
			[]shownObject{
				object("vnic", "vnic_propolis40", reap.Orphan, resultRemoved, killed),
				object("vnic", "vnic_propolis41", reap.Orphan, resultLeft, killed),
			}, 0, false, `1 removed, 1 left

vnic        vnic_propolis40
            orphan, removed: left by unfinished instance ensure of ci9
vnic        vnic_propolis41
            orphan, left: left by unfinished instance ensure of ci9

--all-objects lists all 2
`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			streams, out, _ := terminal.Buffers(terminal.Pretended{Terminal: true, Width: 80})
			if err := screen(streams.Out, c.objects, c.foreign, c.dry); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, out.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}
