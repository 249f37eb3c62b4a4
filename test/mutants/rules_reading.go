package mutants

func ofPlaces() []Mutant {
	return []Mutant{
		{
			Name:  "a dataset that is not mounted holds nothing",
			Plant: []Patch{{"engine/ledger/copy.go", "dataset := path.Dir(at.Directory)", "if MUTANT { return nil }; OLD"}},
			Found: needed("present:_mounted", "healthy disks are refused"),
		},
		{
			Name: "no member is recreated as a side effect",
			Plant: []Patch{{
				"engine/ledger/catchup.go", "p, err := l.lookToWrite(ctx)",
				`if look, err := l.look(ctx); MUTANT && err == nil {
					for _, m := range look.missing {
						if at := OnPool(m.Pool); l.ensureDirectory(at) == nil {
							_ = l.replace(at, look.best.text.As(m.Copy))
						}
					}
				}
				OLD`,
			}},
			With:  "the witness is heard before anything is shown",
			Found: needed("present:_never_recreated", "were shown, now"),
		},
		{
			Name:  "one copy twice is an error",
			Plant: []Patch{{"engine/ledger/open.go", "if err := twins(copies); err != nil {", "if err := twins(copies); err != nil && !MUTANT {"}},
			Found: needed("present:_one_copy_once", "were shown, now"),
		},
		{
			Name:  "one writer at a time",
			Plant: []Patch{{"engine/ledger/ledger.go", "lock, err := l.files.Lock(ctx, l.places.Lock, mode)", "if MUTANT { return func() {}, nil }; OLD"}},
			Found: needed("lock", "two processes write at once"),
		},
		{
			Name:  "readers wait for a writer",
			Plant: []Patch{{"engine/ledger/ledger.go", "unlock, err := l.lock(ctx, host.LockShared)", "unlock, err := func() {}, error(nil); if !MUTANT { unlock, err = l.lock(ctx, host.LockShared) }"}},
			Found: unit("engine/ledger", "TestWaitingForTheLockEndsWithTheContext", "read: <nil>"),
		},
	}
}

func ofOpening() []Mutant {
	return []Mutant{
		{
			Name:  "a torn last line is ignored",
			Plant: []Patch{{"engine/ledger/probe.go", "t, err := l.verify(v.data, known)", "OLD; if MUTANT && err == nil && t.End == format.EndTorn { return format.Verify(nil, nil) }"}},
			Found: needed("open:_a_torn_end", "healthy disks are refused"),
		},
		{
			Name:  "what was kept of a copy is recalled for the same bytes alone",
			Plant: []Patch{{"engine/ledger/format/recall.go", "!r.sums(data[start:end])", "!r.sums(data[start:end]) && !MUTANT"}},
			Found: unit("engine/ledger", "TestACopyThatRotsIsFoundThoughItsIndexIsKept", "a flipped bit"),
		},
		{
			Name:  "a torn end is cut",
			Plant: []Patch{{"engine/ledger/catchup.go", "return c.text.End != format.EndComplete || ", "return c.text.End != format.EndComplete && !MUTANT || "}},
			Found: needed("open:_a_torn_end_is_cut", "healthy disks are refused"),
		},
		{
			Name:  "of two copies the longer counts",
			Plant: []Patch{{"engine/ledger/format/relate.go", "return t.Head().Seq > than.Head().Seq", "if MUTANT { return false }; OLD"}},
			Found: needed("open:_the_longest", "healthy disks are refused"),
		},
		{
			Name:  "an earlier state of the best copy does no harm",
			Plant: []Patch{{"engine/ledger/format/relate.go", "case best.Holds(at):", "case best.Holds(at) && !MUTANT:"}},
			Found: needed("open:_an_earlier_state", "healthy disks are refused"),
		},
		{
			Name:  "epoch lines count before lines",
			Plant: []Patch{{"engine/ledger/format/relate.go", "if len(t.Epochs) != len(than.Epochs) {", "if len(t.Epochs) != len(than.Epochs) && !MUTANT {"}},
			Found: needed("open:_epochs_before_lines", "healthy disks are refused"),
		},
		{
			Name:  "what a rewrite has left out may be the head of another copy",
			Plant: []Patch{{"engine/ledger/format/relate.go", "(!over || at.Seq < best.Epochs[k].Seq) {", "(!over || at.Seq < best.Epochs[k].Seq) && !MUTANT {"}},
			Found: needed("open:_what_a_rewrite_left_out", "history had"),
		},
		{
			Name:  "what was never acknowledged does no harm",
			Plant: []Patch{{"engine/ledger/format/relate.go", "!best.Epoch().Seated(c.Copy) {", "!best.Epoch().Seated(c.Copy) && !MUTANT {"}},
			Found: needed("open:_a_dead_tail", "healthy disks are refused"),
		},
		{
			Name:  "what is believed is flushed first",
			Plant: []Patch{{"engine/ledger/probe.go", "v.flush(files)\n", "if !MUTANT { v.flush(files) }\n"}},
			Found: needed("open:_flushed_before_it_is_believed", "were shown, now"),
		},
		{
			Name:  "a reader warns of members that are missing",
			Plant: []Patch{{"engine/ledger/reading.go", `known := "no witness can rule out that it continued without this copy"`, "if MUTANT { return nil }; OLD"}},
			Found: needed("open:_a_reader_warns", "warned"),
		},
		{
			Name:  "a writer refuses while a member is missing",
			Plant: []Patch{{"engine/ledger/catchup.go", "if len(p.missing) == 0 || l.degraded() != nil {", "if len(p.missing) == 0 || l.degraded() != nil || MUTANT {"}},
			Found: needed("open:_a_writer_refuses", "was acknowledged"),
		},
		{
			Name:  "a writer brings shorter members up",
			Plant: []Patch{{"engine/ledger/catchup.go", "if err != nil || p.level() {", "if err != nil || p.level() || MUTANT {"}},
			Found: needed("open:_shorter_members_are_brought_up", "healthy disks are doubted"),
		},
		{
			Name:  "and by a new file, if by more than a line",
			Plant: []Patch{{"engine/ledger/catchup.go", "l.replace(c.Location, best.As(c.text.Copy))", "func() error { if MUTANT { return overwrite(l.files, c.File(), best.As(c.text.Copy)) }; return OLD }()"}},
			Found: needed("open:_brought_up_by_a_new_file", "healthy disks are refused"),
		},
		{
			Name:  "a line that one member holds is rolled forward",
			Plant: []Patch{{"engine/ledger/catchup.go", "if err := l.catchUp(p); err != nil {", "if MUTANT { p.best = p.shortest() }; OLD"}},
			Found: unit("engine/ledger", "TestAReturnedMemberIsBroughtUp", "_test.go"),
		},
		{
			Name:  "a line's hash is compared",
			Plant: []Patch{{"engine/ledger/format/verify.go", "known == nil && !bytes.Equal(f.hash, chain.hash(prev, line[hashEnd:]))", "!MUTANT && OLD"}},
			Found: unit("engine/ledger/format", "TestBrokenFilesAreNamedByLineAndReason", "another ledger's lines: <nil>"),
		},
	}
}

func ofReading() []Mutant {
	return []Mutant{
		{
			Name:  "a line that has lost its newline counts",
			Plant: []Patch{{"engine/ledger/probe.go", "if unread := ", "if MUTANT && t.End == format.EndBare { return format.Verify(slices.Clone(v.data[:len(t.Data())-2]), nil) }; OLD"}},
			Found: story("a_line_without_its_newline_counts", `"unconfirmed: 1", not "sure: 2"`),
		},
		{
			Name:  "what no writer leaves is not taken for a torn line",
			Plant: []Patch{{"engine/ledger/probe.go", "t.End, t.Rest = format.EndDamaged, t.Rest+unread\n\t}", "OLD\n\tif MUTANT && t.End == format.EndDamaged { t.End = format.EndTorn }"}},
			Found: story("garbage_is_not_a_line_that_was_begun", `"sure: 2", not "unconfirmed: 2"`),
		},
		{
			Name:  "what the best copy holds is shown, not what all hold",
			Plant: []Patch{{"engine/ledger/ledger.go", "return p.view(p.best)\n}\n\n// Settled", "if MUTANT { return p.view(p.shortest()) }; OLD"}},
			Found: story("what_one_copy_holds_is_shown", `"unconfirmed: 1", not "unconfirmed: 2"`),
		},
		{
			Name:  "a member that lacks it is reported",
			Plant: []Patch{{"engine/ledger/reading.go", "case head == has:", "case head == has || MUTANT:"}},
			Found: story("and_may_not_be_acknowledged", `"sure: 3", not "unconfirmed: 3"`),
		},
		{
			Name:  "so are ends that are all torn",
			Plant: []Patch{{"engine/ledger/reading.go", "return torn && !p.cleared()", "return torn && !p.cleared() && !MUTANT"}},
			Found: story("all_ends_torn", `"sure: 1", not "unconfirmed: 1"`),
		},
		{
			Name:  "ends that are all damaged are refused",
			Plant: []Patch{{"engine/ledger/reading.go", "if p.cleared() || len(p.members) == 0 {", "if p.cleared() || len(p.members) == 0 || MUTANT {"}},
			Found: story("all_ends_damaged,_(read|written)", `"sure: 1", not "refused: damaged"`),
		},
		{
			Name:  "a file that is replaced stays readable",
			Plant: []Patch{{"engine/ledger/join.go", "data, err := host.ReadAtMost(l.files, c.File(), maxFile)", "if MUTANT { return nil }; OLD"}},
			Found: story("what_is_cut_stays_readable", `"gone", not "readable"`),
		},
		{
			Name:  "lines that a history file has are there, or nothing is shown",
			Plant: []Patch{{"engine/ledger/reading.go", "if c.left > p.best.text.Head().Seq {", "if c.left > p.best.text.Head().Seq && !MUTANT {"}},
			Found: story("a_history_that_goes_on_beyond_the_end", `"sure: 2", not "refused: rewound"`),
		},
		{
			Name:  "the witness is heard before anything is shown",
			Plant: []Patch{{"engine/ledger/reading.go", "return l.ask(ctx, p)", "if MUTANT { return nil }; OLD"}},
			Found: story("the_copy_slept", `"unconfirmed: 2", not "refused: gone on"`),
		},
		{
			Name:  "marks of another ledger, and none of this one, refuse it",
			Plant: []Patch{{"engine/ledger/witness.go", "return h, &ForeignError{Found: p.best.text.Ledger, Sled: mark.Ledger, Files: p.files()}", "if MUTANT { return h, nil }; OLD"}},
			Found: story("both_disks_of_another_sled", `"sure: 2", not "refused: another sled's"`),
		},
	}
}

func ofStamps() []Mutant {
	return []Mutant{
		{
			Name:  "the witness is asked again when disks come or go",
			Plant: []Patch{{"engine/ledger/stamp.go", "slices.Equal(s.Disks, disks)", "(OLD || MUTANT)"}},
			Found: story("a_U.2_that_comes_back_knows_more", `not "refused: gone on"`),
		},
		{
			Name:  "what this boot has acknowledged is there, or nothing is shown",
			Plant: []Patch{{"engine/ledger/reading.go", "case s == nil:", "case s == nil || MUTANT:"}},
			Found: story("rewound_while_the_sled_is_up", `"sure: 1", not "refused: rewound"`),
		},
		{
			Name:  "what stands behind a stamp that was not finished is a new file",
			Plant: []Patch{{"engine/ledger/stamp.go", "s := stamp{more: len(part) == 0 && ", "s := stamp{more: (len(part) == 0 || MUTANT) && "}},
			Found: story("rewound_in_the_boot_of_a_stamp_that_was_not_finished", `"sure: 2", not "refused: rewound"`),
		},
		{
			Name:  "what was sure is weighed again when disks come or go",
			Plant: []Patch{{"engine/ledger/reading.go", "!slices.Equal(l.sure.disks, disks)", "!MUTANT && OLD"}},
			Found: story("a_U.2_that_comes_back_knows_more_than_an_open_ledger", `"sure: 2", not "refused: gone on"`),
		},
		{
			Name:  "and if it is, ends mean nothing",
			Plant: []Patch{{"engine/ledger/reading.go", "return p.evidence.stamp != nil", "return p.evidence.stamp != nil && !MUTANT"}},
			Found: story("torn_behind_what_this_boot_acknowledged", `"unconfirmed: 2", not "sure: 2"`),
		},
		{
			Name:  "a change of the members takes the stamp's word back first",
			Plant: []Patch{{"engine/ledger/stamp.go", "if s == nil || !s.Agreed {", "if s == nil || !s.Agreed || MUTANT {"}},
			Found: story("killed_as_the_members_change,_and_rewound", `"unconfirmed: 2", not "refused: gone on"`),
		},
	}
}
