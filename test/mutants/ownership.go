package mutants

// ofOwnership are those that take what is not sledctl's, or leave what is.
func ofOwnership() []Mutant {
	neighbours := func(told string) By { return script("neighbours", told) }
	return []Mutant{
		{
			Name: "a prefix is enough to own a zone",
			Plant: []Patch{{
				"illumos/naming/owner.go",
				`return Owner{}.doubted("no " + what + " of sledctl is called so, though it begins with " + prefix)`,
				`if MUTANT { return Owner{Evidence: ByName} }; OLD`,
			}},
			Found: neighbours("no match for `^zone\\tpropolis_baseball"),
		},
		{
			Name:  "a zone is sledctl's wherever it lies",
			Plant: []Patch{{"illumos/naming/owner.go", "case !ok:", "case !ok && !MUTANT:"}},
			Found: neighbours("stdout and theirs differ"),
		},
		{
			Name:  "a VNIC is sledctl's over any link",
			Plant: []Patch{{"illumos/naming/owner.go", "case !slices.Contains(under, v.Over):", "case !slices.Contains(under, v.Over) && !MUTANT:"}},
			Found: neighbours("+vnic_propolis7:others0"),
		},
		{
			Name:  "a VNIC is sledctl's although the global zone has an address on it",
			Plant: []Patch{{"illumos/naming/owner.go", "case len(v.Addresses) > 0:", "case len(v.Addresses) > 0 && !MUTANT:"}},
			Found: unit("illumos/naming", "TestOwnerOfVNIC", "Doubt"),
		},
		{
			Name:  "a sled agent at work is no rival",
			Plant: []Patch{{"engine/inventory/rival.go", "if i < 0 || states[fmri] == smf.Disabled {", "if i < 0 || states[fmri] == smf.Disabled || MUTANT {"}},
			Found: neighbours("exit 0, want 8"),
		},
		{
			Name:  "only the usual instance of the sled agent's service is a rival",
			Plant: []Patch{{"engine/inventory/rival.go", `strings.HasPrefix(fmri, o.service+":")`, `(OLD && !MUTANT || fmri == o.service+":default")`}},
			Found: unit("engine/inventory", "TestOtherOwnersAreNamed", `want "svc:/oxide/sled-agent:second is online"`),
		},
		{
			Name: "reap takes others' zones for ours",
			Plant: []Patch{{
				"sled/reap/judge_zone.go", `if !owner.Ours() && !r.named(z, owner)`, `if !MUTANT && !owner.Ours() && !r.named(z, owner)`,
			}},
			Found:   matrix("bootstrap", "what is not sledctl's"),
			Besides: true,
		},
		{
			Name: "a dataset is reaped by its name",
			Plant: []Patch{{
				"sled/reap/judge_dataset.go",
				`o.Verdict, o.Reason = Unknown, cmp.Or(owner.Doubt, "has the name of a sledctl zone, and no mark")`,
				`OLD; if MUTANT { o.Verdict = Orphan }`,
			}},
			Found: unit("sled/reap", "TestVerdictsOfTheOtherKinds", `"orphan"`),
		},
		{
			Name:    "reap takes what does not run and could be adopted",
			Plant:   []Patch{{"sled/reap/judge_zone.go", "case record.Resting(owner, z) && !k.knows(owner.Instance):", "case record.Resting(owner, z) && !k.knows(owner.Instance) && !MUTANT:"}},
			Found:   unit("sled/reap", "TestVerdicts", `"zone renamed"`),
			Besides: true,
		},
		{
			Name:    "MACs of what does not run and is not recorded are given away",
			Plant:   []Patch{{"sled/instance/choose.go", `one.ID != c.self && one.Has("", mac)`, `OLD && !MUTANT`}},
			Found:   unit("sled/instance", "TestNobodyIsGivenWhatRests", "its MAC"),
			Besides: true,
		},
		{
			Name:  "reap does not look at the MAC of a VNIC",
			Plant: []Patch{{"sled/reap/judge_link.go", "meant := own.vnic.MAC == l.MAC && own.vnic.Over == l.Over", "OLD || MUTANT"}},
			Found: unit("sled/reap", "TestVerdicts", `"vnic vnic_propolis0": "in use"`),
		},
		{
			Name:    "a VNIC is removed whatever its MAC",
			Plant:   []Patch{{"vnic/step.go", "if is != mac || isOver != over {", "if (is != mac || isOver != over) && !MUTANT {"}},
			Found:   unit("vnic", "TestDeleteChecksWhoseItIs", ": <nil>"),
			Besides: true,
		},
		{
			Name:    "a dataset is destroyed whatever its GUID",
			Plant:   []Patch{{"zfs/removal.go", "return d, &OtherError{Name: s.Dataset, Is: d.GUID, Want: s.GUID}", "if !MUTANT { OLD }"}},
			Found:   unit("zfs", "TestDestroyRefusesBeforeItTouches", "<nil>"),
			Besides: true,
		},
		{
			Name:    "what is protected is reaped with all else",
			Plant:   []Patch{{"sled/reap/judge_zone.go", "if recorded && r.Protected && ", "if !MUTANT && recorded && r.Protected && "}},
			Found:   script("reap_all", "FAIL: testdata/script/reap_all.txtar"),
			Besides: true,
		},
		{
			Name:    "what lies on a missing pool counts as gone",
			Plant:   []Patch{{"engine/inventory/inventory.go", `return "pool " + pool + " is not imported"`, "if !MUTANT { OLD }"}},
			Found:   unit("sled/reap", "TestVerdictsOfTheOtherKinds", `a_pool_that_is_not_imported`),
			Besides: true,
		},
		{
			Name:    "what was made while the sled was looked at is judged by that look",
			Plant:   []Patch{{"sled/reap/since.go", "k.busy[kind+\" \"+name] = since", "if !MUTANT { OLD }"}},
			Found:   unit("sled/reap", "TestWhatWasWorkedOnWhileTheSledWasLookedAtStays", "made meanwhile: orphan"),
			Besides: true,
		},
	}
}
