package mutants

// ofChanges are those of how anything is changed: locks, intents, steps, what is
// taken back, and the ledger.
func ofChanges() []Mutant {
	return []Mutant{
		{
			Name: "an undo left out",
			Plant: []Patch{{
				"engine/plan/apply.go",
				`err := attempt(ctx, host.ForAction(r.h, "undo "+a.ID), b.Step)`, `if MUTANT { continue }; OLD`,
			}},
			Found: matrix("vnic_create", "but (-before +after)"),
		},
		{
			Name: "an intent not written",
			Plant: []Patch{{
				"engine/operation/operation.go",
				`return append(d.OnStart, ledger.Fact{Key: intentKey(id), Value: value}), nil`, `if MUTANT { return d.OnStart, nil }; OLD`,
			}},
			Found: matrix("a_VNIC", "no intent was flushed before"),
		},
		{
			Name:    "a line not flushed",
			Plant:   []Patch{{"engine/ledger/append.go", `group.Go(func() error { return l.files.Sync(c.File()) })`, `if MUTANT { continue }; OLD`}},
			Found:   matrix("a_VNIC", "no intent was flushed before"),
			Besides: true,
		},
		{
			Name: "an outcome without its line",
			Plant: []Patch{{
				"engine/operation/bracket.go",
				`		return remembered(env, view, *report, report.ID, facts)
`,
				`		if MUTANT { return nil, nil }
		return remembered(env, view, *report, report.ID, facts)
`,
			}},
			Found: matrix("a_VNIC", "after delete and reap"),
		},
		{
			Name:  "a run that died is not answered for",
			Plant: []Patch{{"engine/operation/operation.go", "if open.Subject == subject {", "if open.Subject == subject && !MUTANT {"}},
			Found: histories(1200, `"intent/`),
		},
		{
			Name:  "of several runs that died only the last is answered for",
			Plant: []Patch{{"engine/operation/operation.go", "d.Intent.Supersedes = append(d.Intent.Supersedes, open.ID)", "if MUTANT { d.Intent.Supersedes = nil }; OLD"}},
			Found: By{"test/matrix", "^TestKillPairs$/^rows$/^a_VNIC$", `"intent/`, 0},
			Soak:  true,
		},
		{
			Name:    "what failed and left something ends its intent",
			Plant:   []Patch{{"engine/operation/bracket.go", "return d.OnFailure\n", "if MUTANT { return append(d.OnFailure, ended...) }; OLD"}},
			Found:   unit("engine/operation", "TestWhatTheLedgerHoldsAfterARun", "0 open intents, want"),
			Besides: true,
		},
		{
			Name:  "a subject is not locked for one alone",
			Plant: []Patch{{"engine/operation/lock.go", "l, err := lock(ctx, env, subject, mode)", "if MUTANT { mode = host.LockShared }; OLD"}},
			Found: unit("engine/operation", "TestALockedSubjectNamesItsHolder", "error: <nil>"),
		},
		{
			Name:  "the file of a lock outlives the run",
			Plant: []Patch{{"engine/operation/lock.go", "if ended {", "if ended && !MUTANT {"}},
			Found: script("lock_files", "FAIL: testdata/script/lock_files.txtar"),
		},
		{
			Name:    "a process that waited for a lock gets one whose file was removed",
			Plant:   []Patch{{"host/flock.go", "if err == nil && !os.SameFile(locked, named) {", "if err == nil && !MUTANT && !os.SameFile(locked, named) {"}},
			Found:   unit("host", "TestLocksOfTwoProcessesAreOfTheFileThatHasTheName", "two processes hold the lock"),
			Besides: true,
		},
		{
			Name: "a signal keeps the outcome from being written",
			Plant: []Patch{{
				"engine/operation/bracket.go",
				"view, err := book.Update(context.WithoutCancel(ctx), ",
				"base := context.WithoutCancel(ctx); if MUTANT { base = ctx }; view, err := book.Update(base, ",
			}},
			Found:   matrix("a_VNIC", `exit 9, left ["vnic spare0"]`),
			Besides: true,
		},
		{
			Name:  "a step may take as long as it likes",
			Plant: []Patch{{"engine/plan/apply.go", "if most > 0 {", "if most > 0 && !MUTANT {"}},
			Found: unit("engine/plan", "TestAStepEndsAtItsDeadline", "24h0m0s"),
		},
		{
			Name:  "undo goes on under a command that still runs",
			Plant: []Patch{{"engine/plan/apply.go", "if r.stillRuns {", "if r.stillRuns && !MUTANT {"}},
			Found: unit("engine/plan", "TestNothingIsTakenFromUnderACommandThatStillRuns", "plan_test.go"),
		},
		{
			Name:    "of two copies the older is believed",
			Plant:   []Patch{{"engine/ledger/format/relate.go", "return t.Head().Seq > than.Head().Seq", "if MUTANT { return t.Head().Seq < than.Head().Seq }; OLD"}},
			Found:   unit("engine/ledger", "TestAReturnedMemberIsBroughtUp", "occurs on one side only"),
			Besides: true,
		},
		{
			Name:    "a line goes to the first copy only",
			Plant:   []Patch{{"engine/ledger/append.go", "l.write(p.members, line)", "func() error { if MUTANT { p.members = p.members[:1] }; return OLD }()"}},
			Found:   unit("engine/ledger", "TestFactsAreKeptOnEveryCopy", "append_test.go"),
			Besides: true,
		},
		{
			Name:    "a hash is not compared",
			Plant:   []Patch{{"engine/ledger/format/verify.go", "known == nil && !bytes.Equal(f.hash, chain.hash(prev, line[hashEnd:]))", "!MUTANT && OLD"}},
			Found:   unit("engine/ledger/format", "TestBrokenFilesAreNamedByLineAndReason", "another ledger's lines: <nil>"),
			Besides: true,
		},
		{
			Name:    "the ledger is not locked",
			Plant:   []Patch{{"engine/ledger/ledger.go", "lock, err := l.files.Lock(ctx, l.places.Lock, mode)", "if MUTANT { return func() {}, nil }; OLD"}},
			Found:   unit("engine/ledger", "TestProcessesTakeTurns", "_test.go"),
			Besides: true,
		},
	}
}
