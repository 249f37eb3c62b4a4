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
	killed := "left by ensure of instance ci9, which did not end"
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
            orphan, to remove: left by ensure of instance ci9, which did not end
vnic        2, orphan, to remove: left by ensure of instance ci9, which did not
            end
            vnic_propolis40 vnic_propolis41

sledctl reap removes what is to be removed; --all-objects lists all 5
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
		"a reap says what it did": {
			[]shownObject{
				object("vnic", "vnic_propolis40", reap.Orphan, resultRemoved, killed),
				object("vnic", "vnic_propolis41", reap.Orphan, resultLeft, killed),
			}, 0, false, `1 removed, 1 left

vnic        vnic_propolis40
            orphan, removed: left by ensure of instance ci9, which did not end
vnic        vnic_propolis41
            orphan, left: left by ensure of instance ci9, which did not end

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
