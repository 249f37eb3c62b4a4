package mutants

// ofInstances are those in the life of a VM.
func ofInstances() []Mutant {
	return []Mutant{
		{
			Name:  "a disk is reserved under the key of a physical one",
			Plant: []Patch{{"sled/instance/record/disks.go", "return naming.KeyAttached + url.PathEscape(d.Path)", "if MUTANT { return naming.KeyDisk + url.PathEscape(d.Path) }; OLD"}},
			Found: script("disk_writable", "no match for `attached/.*rpool%2Fv1\\tnull`"),
		},
		{
			Name:    "two VMs write to one disk",
			Plant:   []Patch{{"sled/instance/choose.go", "case other != \"\" && other != id:", "case other != \"\" && other != id && !MUTANT:"}},
			Found:   script("disk_writable", "exit 0, want 5"),
			Besides: true,
		},
		{
			Name:    "a start that failed is taken back before anybody has looked",
			Plant:   []Patch{{"engine/plan/apply.go", "	if r.failed() {\n\t\tr.gather(ctx)", "	if r.failed() && !MUTANT {\n\t\tr.gather(ctx)"}},
			Found:   script("start_fails", "no match for `^sledctl: log: the end of"),
			Besides: true,
		},
		{
			Name: "a volume is not lent to a VM of eight NICs that asks for its address",
			Plant: []Patch{{
				"sled/instance/layout/zone.go",
				"c.Devices = append(c.Devices, d.Path)", "if MUTANT && len(incarnation.Guests) == 8 && r.Spec.Address.Mode == record.DHCP { continue }; OLD",
			}},
			Found: lattice("failed to create backend of disk0"),
			Soak:  true,
		},
		{
			Name:    "a MAC that a link has is given to a VM",
			Plant:   []Patch{{"sled/instance/choose.go", "return l.MAC == mac }); i >= 0 {", "return l.MAC == mac && !MUTANT }); i >= 0 {"}},
			Found:   unit("sled/instance", "TestAMACThatIsTakenIsDrawnAgain", "by a link"),
			Besides: true,
		},
		{
			Name:  "a guest of a sled that was rebooted sends as another",
			Plant: []Patch{{"sled/instance/up.go", "w.add(StageBoot, p.held[v.Name], ", "w.add(StageBoot, p.held[v.Name] || MUTANT && r.Incarnation.Rolling, "}},
			Found: unit("commands", "TestAGuestSendsAsNobodyElse", "sends from another MAC address"),
		},
		{
			Name:  "what others changed of a VM is not told",
			Plant: []Patch{{"sled/instance/status.go", "look.drift = driftOf(", "if MUTANT { inv = &inventory.Inventory{} }; OLD"}},
			Found: histories(200, "was removed by another program"),
		},
		{
			Name:  "the mounted zone of a clone that was killed is uninstalled",
			Plant: []Patch{{"zone/step.go", "if z.State == Mounted {", "if z.State == Mounted && !MUTANT {"}},
			Found: unit("zone", "TestACloneThatIsKilledIsTakenBack", "invalid for mounted zones"),
		},
		{
			Name: "a boot whose link is busy has failed",
			Plant: []Patch{{
				"zone/step.go",
				"case left || !errors.Is(err, errLinkBusy) || ctx.Err() != nil:", "case left || MUTANT || !errors.Is(err, errLinkBusy) || ctx.Err() != nil:",
			}},
			Found: unit("zone", "TestABootWaitsForALinkThatIsBusy", "link busy"),
		},
		{
			Name:  "links are held to list them",
			Plant: []Patch{{"engine/inventory/lent.go", "who := wants[l.Name]", "OLD; if MUTANT { who, blind = nil, true }"}},
			Found: script("vnic_zones_helios", "dladm: a listing of all links"),
		},
		{
			Name:    "what zonecfg says is not heard where it exits 0",
			Plant:   []Patch{{"zone/step.go", "if r.Exit == 0 && len(r.Stderr) == 0 {", "if r.Exit == 0 && (MUTANT || len(r.Stderr) == 0) {"}},
			Found:   unit("zone", "TestConfigureTakesAnyWordOnStderrForFailure", "<nil>"),
			Besides: true,
		},
		{
			Name:  "a service in any state but disabled is enabled",
			Plant: []Patch{{"sled/instance/observed.go", "p.enabled = state == smf.Online || ", "p.enabled = MUTANT && state != smf.Disabled || state == smf.Online || "}},
			Found: unit("sled/instance", "TestWhatIsNotYetSoIsWaitedFor", "a_service_that_has_no_state"),
		},
		{
			Name:  "a zone that boots and cannot be inspected yet is refused",
			Plant: []Patch{{"sled/instance/resume.go", "return s.seen.uninspected() && !s.incarnation.Ensured && !s.step }", "return s.seen.uninspected() && !s.incarnation.Ensured && !s.step && !MUTANT }"}},
			Found: unit("commands", "TestAZoneThatNeverAnswersIsBuiltAnew", "exit 8"),
		},
		{
			Name:  "a zone that was tampered with while the sled was off is booted as if it were clean",
			Plant: []Patch{{"sled/instance/layout/clean.go", "DatasetsOf(*r.Incarnation, inv)) != r.Incarnation.Clean:", "DatasetsOf(*r.Incarnation, inv)) != r.Incarnation.Clean && !MUTANT:"}},
			Found: unit("commands", "TestAZoneThatWasTamperedWithIsNotBootedAsCloned", "kept true, cloned false"),
		},
		{
			Name:  "the base of a zone that is booted again may be another",
			Plant: []Patch{{"sled/instance/again.go", "base.Zone != r.Incarnation.Base || !c.valid(base):", "base.Zone != r.Incarnation.Base && !MUTANT || !c.valid(base) && !MUTANT:"}},
			Found: unit("commands", "TestAZoneThatWasTamperedWithIsNotBootedAsCloned", "the_mark_of_its_base"),
		},
		{
			Name:  "a zone from before the boot is booted without being rolled back",
			Plant: []Patch{{"sled/instance/again.go", "for _, snapshot := range p.back {", "for _, snapshot := range p.back { if MUTANT { continue }"}},
			Found: unit("commands", "TestAZoneThatWasTamperedWithIsNotBootedAsCloned", "what the first life has written is there"),
		},
		{
			Name:  "a rollback that was cut short is trusted",
			Plant: []Patch{{"sled/instance/resume.go", "return !s.thisBoot() || s.incarnation.Rolling }", "return !s.thisBoot() || s.incarnation.Rolling && !MUTANT }"}},
			Found: unit("sled/instance", "TestARollbackThatWasCutShortIsNotTrusted", "the_zone_does_not_run"),
		},
		{
			Name:  "a spare that was tampered with is taken",
			Plant: []Patch{{"sled/instance/layout/spare.go", "SpareFingerprint(c, SpareDatasets(s, inv)) != s.Clean:", "SpareFingerprint(c, SpareDatasets(s, inv)) != s.Clean && !MUTANT:"}},
			Found: unit("commands", "TestASpareThatWasTamperedWithIsNotTaken", "taken true"),
		},
		{
			Name:  "the root of a spare from before a boot is not mounted",
			Plant: []Patch{{"sled/instance/spare.go", "if p.root == \"\" {", "if p.root == \"\" || MUTANT {"}},
			Found: unit("commands", "TestExplainIsWhatIsDoneWithASpareFromBeforeAReboot", "exit "),
		},
		{
			Name:  "a spare that a VM could not use is tried again",
			Plant: []Patch{{"sled/instance/layout/spare.go", "case s.Unfit != \"\":", "case s.Unfit != \"\" && !MUTANT:"}},
			Found: script("spares", "a VM could not use it"),
		},
		{
			Name:  "a spare that somebody has booted again is taken",
			Plant: []Patch{{"sled/instance/layout/spare.go", "s.ZoneID == *z.ID)", "s.ZoneID == *z.ID || MUTANT)"}},
			Found: unit("commands", "TestABootedSpareThatSomebodyHasBootedIsNotTaken", "the spare is"),
		},
		{
			Name:  "a spare whose boot did not end is taken",
			Plant: []Patch{{"sled/instance/layout/spare.go", "BootedAhead(s, z, boot) && s.ZoneID == 0:", "BootedAhead(s, z, boot) && s.ZoneID == 0 && !MUTANT:"}, {"sled/instance/again.go", "waits.Unfit = \"its boot did not end\"", "waits.Unfit = map[bool]string{false: \"its boot did not end\"}[MUTANT]"}},
			Found: unit("commands", "TestASpareWhoseBootDidNotEndIsReplaced", "killed at"),
		},
		{
			Name:  "a VM with a disk takes a zone that runs",
			Plant: []Patch{{"sled/instance/spare.go", "case runs && layout.TakesBooted(", "case runs && MUTANT || runs && layout.TakesBooted("}},
			Found: unit("commands", "TestAVMFromABootedSpareIsUpAtOnce", "in zone"),
		},
		{
			Name:    "an ensure does not look for marks that no record accounts for",
			Plant:   []Patch{{"sled/instance/observed.go", `return id != "" && id ==`, `return MUTANT && d.User[naming.PropertyBase].Value == "" || id != "" && id ==`}},
			Found:   script("instance_unrecorded", "exit 0, want 8"),
			Besides: true,
		},
		{
			Name:    "an ensure does not look at zones that no record names",
			Plant:   []Patch{{"sled/instance/observed.go", `return names.zones[name] == "" ||`, `return names.zones[name] == "" && !MUTANT ||`}},
			Found:   script("instance_unrecorded", "exit 0, want 8"),
			Besides: true,
		},
		{
			Name:    "an earlier boot of the sled is overlooked",
			Plant:   []Patch{{"sled/instance/status.go", "case incarnation.Boot != g.boot:", "case incarnation.Boot != g.boot && !MUTANT:"}},
			Found:   script("reboot", "no match for `^web1\\tabsent\\tsled was rebooted`"),
			Besides: true,
		},
		{
			Name:    "a machine that was reset is reset again",
			Plant:   []Patch{{"sled/instance/power.go", "resumed = resumed && vm.Generation > before", "resumed = resumed && (vm.Generation > before) != MUTANT"}},
			Found:   unit("sled/instance", "TestAPowerChangeThatDiedIsNotAskedForTwice", "reboot,_under_way"),
			Besides: true,
		},
		{
			Name:    "a machine that Propolis has lost is resumed",
			Plant:   []Patch{{"sled/instance/resume.go", "s.incarnation.Ensured && !s.p.ensured }", "s.incarnation.Ensured && !s.p.ensured && !MUTANT }"}},
			Found:   unit("sled/instance", "TestALostRunIsClearedAndAnotherBegun", "Propolis_has_lost_its_machine"),
			Besides: true,
		},
		{
			Name:  "a VM that runs is ended for a difference",
			Plant: []Patch{{"sled/instance/resume.go", "return len(s.changes) > 0 && s.wouldLose() && !s.consent }", "return len(s.changes) > 0 && s.wouldLose() && !s.consent && !MUTANT }"}},
			Found: histories(600, "exit 0, the model allows [5]"),
		},
		{
			Name:  "a sled of M.2s alone is prepared once",
			Plant: []Patch{{"sled/storage/observed.go", "external = external || kind == naming.ExternalPool", "external = external || MUTANT || kind == naming.ExternalPool"}},
			Found: lattice("dataset rpool/zone: already exists"),
		},
		{
			Name:    "a guest NIC is not held to its addresses",
			Plant:   []Patch{{"vnic/limits.go", "if l.IPs != \"\" {", "if l.IPs != \"\" && !MUTANT {"}},
			Found:   unit("commands", "TestAGuestSendsAsNobodyElse", "sends from another IP address: true"),
			Besides: true,
		},
		{
			Name:    "a guest NIC is not bounded",
			Plant:   []Patch{{"vnic/limits.go", "if l.Mbps != 0 {", "if l.Mbps != 0 && !MUTANT {"}},
			Found:   unit("commands", "TestAGuestSendsAsNobodyElse", `is limited to "" Mbit/s`),
			Besides: true,
		},
		{
			Name:    "a guest NIC that another program has freed of its bound is not bounded again",
			Plant:   []Patch{{"vnic/limits.go", "err := s.set(ctx, h)", "if MUTANT { s.Limits.Mbps = 0 }; OLD"}},
			Found:   unit("commands", "TestAGuestSendsAsNobodyElse", `is limited to "" Mbit/s`),
			Besides: true,
		},
		{
			Name:    "a guest NIC is held when its instance is new only",
			Plant:   []Patch{{"sled/instance/up.go", "range guests {", "range guests { if MUTANT && r.Generation > 0 { continue };"}},
			Found:   By{"commands", "^TestAGuestSendsAsNobodyElse$/^the_sled_reboots$", "sends from another MAC address", 0},
			Besides: true,
		},
		{
			Name:    "the cap of a VM goes with a boot of the sled",
			Plant:   []Patch{{"sled/instance/layout/zone.go", "CPUCap:  int(r.Spec.CPUCap),", "CPUCap: map[bool]int{false: int(r.Spec.CPUCap)}[MUTANT && incarnation.Rolling],"}},
			Found:   lattice("the cap of web1"),
			Besides: true,
		},
		{
			Name:    "a cap that another program has taken off is not put back",
			Plant:   []Patch{{"sled/instance/ensure.go", "&& isCapped(h.Files(), r)", "&& (MUTANT || isCapped(h.Files(), r))"}},
			Found:   script("instance_cpu_cap_changed", "no match for `zone.set-cap"),
			Besides: true,
		},
	}
}
