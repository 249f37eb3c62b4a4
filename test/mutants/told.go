package mutants

// ofWhatIsTold are those of what the operator, the control plane and others are
// told, and who may ask.
func ofWhatIsTold() []Mutant {
	return []Mutant{
		{
			Name:  "datasets of a pool that does not answer are ready",
			Plant: []Patch{{"sled/storage/status.go", "case !p.Answers():", "case !p.Answers() && !MUTANT:"}},
			Found: script("storage_pulled_and_full", "no match for `^dataset\\tunknown\\tpool"),
		},
		{
			Name:    "a machine's secrets stand in the ledger",
			Plant:   []Patch{{"sled/instance/wanted.go", "if w.Sealed != nil {", "if w.Sealed != nil && !MUTANT {"}},
			Found:   script("secrets", "FAIL: testdata/script/secrets.txtar"),
			Besides: true,
		},
		{
			Name:    "a machine's secrets outlive it",
			Plant:   []Patch{{"sled/instance/secrets/secret.go", "if len(files) == 0 {", "if len(files) == 0 || MUTANT {"}},
			Found:   script("secrets", "FAIL: testdata/script/secrets.txtar"),
			Besides: true,
		},
		{
			Name:  "a base counts the datasets of its clones",
			Plant: []Patch{{"sled/base/retire.go", "st.Valid, st.Reason = r.valid(seen)", "OLD; if MUTANT { st.Clones = len(clonesOf(r, seen)) }"}},
			Found: script("storage_pulled_and_full", "no match for `^1$`"),
		},
		{
			Name:  "a simulated sled that nobody has laid out has no configuration",
			Plant: []Patch{{"commands/cli/simulated.go", "return sim.Ensure(dir, Configured(sim.Options{Seed: 1}))", "if MUTANT { return sim.Ensure(dir, sim.Options{Seed: 1}) }; OLD"}},
			Found: script("sim_init", "FAIL: testdata/script/sim_init.txtar"),
		},
		{
			Name:    "help of nothing succeeds",
			Plant:   []Patch{{"commands/root.go", "case len(rest) > 0 && cmd.HasAvailableSubCommands():", "case MUTANT: return cmd.Help()\n OLD"}},
			Found:   script("bad_arguments", "[sledctl help nope]: exit 0, want 2"),
			Besides: true,
		},
		{
			Name:  "texts of others move the cursor",
			Plant: []Patch{{"commands/terminal/table.go", "if unicode.IsControl(r) || r == unicode.ReplacementChar {", "if (unicode.IsControl(r) || r == unicode.ReplacementChar) && !MUTANT {"}},
			Found: unit("commands/terminal", "TestPrintable", "printable_test.go"),
		},
		{
			Name:  "an agent on the loopback lets in everybody",
			Plant: []Patch{{"agent/listen.go", "(!a.loopback() || len(access.Tokens) == 0)", "(!a.loopback() || len(access.Tokens) == 0 && !MUTANT)"}},
			Found: unit("agent", "TestListenRefusesWhereClientsAreNotToldApart", "the loopback: <nil>"),
		},
		{
			Name:  "an agent answers to any name",
			Plant: []Patch{{"agent/access.go", "if !a.named(r.Host, local.AddrPort().Addr().Unmap()) {", "if !MUTANT && !a.named(r.Host, local.AddrPort().Addr().Unmap()) {"}},
			Found: unit("agent", "TestAdmit", "a name that leads here: role 2"),
		},
		{
			Name:  "a reader may end a VM",
			Plant: []Patch{{"agent/access.go", "if r < e.needs() {", "if r < e.needs() && !MUTANT {"}},
			Found: unit("agent", "TestEveryEndpointNeedsARole", "a reader may: true"),
		},
		{
			Name:    "a NIC's record is written while its VM is moved",
			Plant:   []Patch{{"sled/nicsync/guard.go", `case why != "" && !u.all:`, `case why != "" && !u.all && !MUTANT:`}},
			Found:   unit("sled/nicsync", "TestMovingSinceTheLook", "disabled false: ours running"),
			Besides: true,
		},
		{
			Name:    "owners of networks stand against a record's change",
			Plant:   []Patch{{"peer/napi/client.go", `body := map[string]any{"check_owner": false}`, `body := map[string]any{"check_owner": MUTANT}`}},
			Found:   unit("sled/nicsync", "TestTheRecordOfAVMThatChangedHandsIsChanged", "ours stopped"),
			Besides: true,
		},
		{
			Name:  "an endless answer is read",
			Plant: []Patch{{"peer/exchange/exchange.go", "p := &Pending{in: source{conn: conn, limit: limit, left: limit}", "if MUTANT { limit *= 1000 }; OLD"}},
			Found: unit("propolis", "TestStrangeAnswersAreNotStates", "more than a lot"),
		},
		{
			Name:    "a foreign machine is taken for the instance's",
			Plant:   []Patch{{"propolis/client.go", "return i, c.Target.asked(c.Target.is(i))", "if MUTANT { return i, nil }; OLD"}},
			Found:   By{"test/peers", "^TestPeersThatMisbehave$/propolis_get/another", "nothing names the peer", 0},
			Besides: true,
		},
		{
			Name:    "any JSON is an agent's answer",
			Plant:   []Patch{{"agent/client/client.go", "err == nil && !tell {", "err == nil && !tell && !MUTANT {"}},
			Found:   By{"test/peers", "^TestPeersThatMisbehave$/instance_stop.*agent/empty", "nothing names the peer", 0},
			Besides: true,
		},
		{
			Name:    "what is lost on the way to the control plane is not told again",
			Plant:   []Patch{{"agent/notify.go", "case !nexus.Retryable(err):", "case MUTANT || !nexus.Retryable(err):"}},
			Found:   unit("agent", "TestTheControlPlaneHearsOfTheLastState", "notify_test.go"),
			Besides: true,
		},
		{
			Name: "a question to Propolis has no end",
			Plant: []Patch{{
				"sled/instance/observed.go",
				"func askVM(ctx context.Context, b layout.Blueprint, h host.Host, r record.Record) migration.VM {\n\tctx, release := context.WithTimeout(ctx, layout.AskTimeout)",
				"func askVM(ctx context.Context, b layout.Blueprint, h host.Host, r record.Record) migration.VM {\n\tlimit := layout.AskTimeout; if MUTANT { limit *= 24 * 60 * 60 }\n\tctx, release := context.WithTimeout(ctx, limit)",
			}},
			Found: unit("commands", "TestAPropolisThatSaysNothingHoldsNobodyUp", "instance_mute_test.go"),
		},
		{
			Name:  "two signals at once are two",
			Plant: []Patch{{"commands/cli/signals.go", "if time.Since(first) >= oneSignal {", "if time.Since(first) >= oneSignal || MUTANT {"}},
			Found: script("standin_instance_signals", "no match for `^130$`"),
		},
		{
			Name:  "a hangup ends the program at once",
			Plant: []Patch{{"commands/cli/signals.go", "if !signal.Ignored(syscall.SIGHUP) {", "if !signal.Ignored(syscall.SIGHUP) && !MUTANT {"}},
			Found: script("standin_instance_signals", "no match for `^130$`"),
		},
		{
			Name: "a result that cannot be printed is a failure",
			Plant: []Patch{
				{"commands/cli/signals.go", "case e.Progress.changed():", "case e.Progress.changed() && !MUTANT:"},
				{"commands/cli/signals.go", "case e.book.changed(context.Background()):", "case e.book.changed(context.Background()) && !MUTANT:"},
			},
			Found: script("output_full", "no match for `^3$`"),
		},
		{
			Name:  "one cause of all is reported as if running again helped",
			Plant: []Patch{{"sled/instance/many.go", "kind := fault.Of(e.Failures[0].Err)\n", "OLD; if MUTANT { return fault.Partial }\n"}},
			Found: script("instance_several_exit_codes", "exit 3, want 8"),
		},
		{
			Name:    "a sled that has changed is registered at the generation that is known",
			Plant:   []Patch{{"agent/registration/registration.go", "is.Generation++", "if !MUTANT { OLD }"}},
			Found:   unit("agent/registration", "TestWhatIsSent", "it is known otherwise"),
			Besides: true,
		},
		{
			Name:    "a sled that was decommissioned is registered again",
			Plant:   []Patch{{"agent/registration/registration.go", "if known.Decommissioned {", "if known.Decommissioned && !MUTANT {"}},
			Found:   unit("agent/registration", "TestWhatIsSent", "it is taken out of use"),
			Besides: true,
		},
	}
}
