package mutants

import "slices"

// ofRules are the rules of the ledger, each left out. What each is for says the
// test that finds it: it goes through what can happen to a small sled until a law is
// broken (engine/ledger/needed_test.go), or tells the shortest story in which a reader says
// what is not so (engine/ledger/reading_test.go).
//
// Some break no law there, and other tests find them: a line's hash and the lock of
// readers, since in the check no byte changes on a disk and nobody reads while another
// writes; that a line which one member holds is rolled forward, since only who has
// read it while the others were away would miss it, and was warned; the highest mark,
// which is the witness's own; and that one copy is rewritten after the other and ten
// histories stay, each of which is enough while the other is kept.
func ofRules() []Mutant {
	all := slices.Concat(ofPlaces(), ofOpening(), ofAppends(), ofMembers(), ofTheWitness(), ofRewrites(), ofCreation(), ofReading(), ofStamps())
	for i := range all {
		all[i].Name, all[i].Rule = "rule: "+all[i].Name, true
		if all[i].With != "" {
			all[i].With = "rule: " + all[i].With
		}
	}
	return all
}

// needed has the exploration of a small sled find it, which breaks a law.
func needed(row, law string) By {
	return By{"engine/ledger", "^TestEachRuleIsNeeded$/^" + row + "$", law, 0}
}

// story has the shortest story of a reader find it, which then says otherwise.
func story(row, otherwise string) By {
	return By{"engine/ledger", "^TestEachRuleOfReadingIsNeeded$/^" + row + "$", otherwise, 0}
}

// overwrite is how a file must not be replaced.
func overwrite() Patch {
	return Patch{"engine/ledger/durable.go", "// rename renames within a directory, and flushes it.", `func overwrite(files host.Files, name string, data []byte) error {
	const truncated = 0o1 | 0o100 | 0o1000 // os.O_WRONLY|os.O_CREATE|os.O_TRUNC on Linux, where the tests run
	out, err := files.Open(name, truncated, fileMode)
	if err != nil {
		return err
	}
	_, err = out.Write(data)
	return errors.Join(err, out.Close())
}

OLD`}
}

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
			Plant: []Patch{{"engine/ledger/probe.go", "t, err := format.Verify(v.data, known)", "OLD; if MUTANT && err == nil && t.End == format.EndTorn { return format.Verify(nil, nil) }"}},
			Found: needed("open:_a_torn_end", "healthy disks are refused"),
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
			Name:  "what the best copy has been is in nobody's way",
			Plant: []Patch{{"engine/ledger/format/relate.go", "case best.Holds(at):", "case best.Holds(at) && !MUTANT:"}},
			Found: needed("open:_an_earlier_state", "healthy disks are refused"),
		},
		{
			Name:  "epoch lines count before lines",
			Plant: []Patch{{"engine/ledger/format/relate.go", "if len(t.Epochs) != len(than.Epochs) {", "if len(t.Epochs) != len(than.Epochs) && !MUTANT {"}},
			Found: needed("open:_epochs_before_lines", "healthy disks are refused"),
		},
		{
			Name:  "what a rewrite has left out may be another's head",
			Plant: []Patch{{"engine/ledger/format/relate.go", "(!over || at.Seq < best.Epochs[k].Seq) {", "(!over || at.Seq < best.Epochs[k].Seq) && !MUTANT {"}},
			Found: needed("open:_what_a_rewrite_left_out", "history had"),
		},
		{
			Name:  "what was never acknowledged is in nobody's way",
			Plant: []Patch{{"engine/ledger/format/relate.go", "!best.Epoch().Seated(c.Copy) {", "!best.Epoch().Seated(c.Copy) && !MUTANT {"}},
			Found: needed("open:_a_dead_tail", "healthy disks are refused"),
		},
		{
			Name:  "what is believed is flushed first",
			Plant: []Patch{{"engine/ledger/probe.go", "if v.found == nil || v.found == v.before {", "if v.found == nil || v.found == v.before || MUTANT {"}},
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

func ofAppends() []Mutant {
	return []Mutant{
		{
			Name: "an append is one line, however many facts it holds",
			Plant: []Patch{{
				"engine/ledger/append.go", "line := format.EncodeLine(p.best.text.Head(), p.epoch.N, time.Now(), facts)",
				`if MUTANT && len(facts) > 1 {
					var err error
					if p, err = l.append(ctx, p, facts[:1]); err != nil {
						return nil, err
					}
					facts = facts[1:]
				}
				OLD`,
			}},
			Found: needed("append:_one_line", "appends"),
		},
		{
			Name:  "what is there is looked at again before an append",
			Plant: []Patch{{"engine/ledger/look.go", "visits := make([]*probe, len(l.places.Locations))", "if MUTANT && len(l.seen) > 0 { return l.decide() }; OLD"}},
			With:  "what this boot has acknowledged is there, or nothing is shown",
			Found: needed("append:_on_what_is_there", "were shown, now"),
		},
		{
			Name:  "a line goes to all members",
			Plant: []Patch{{"engine/ledger/append.go", "l.write(p.members, line)", "func() error { if MUTANT { p.members = p.members[:1] }; return OLD }()"}},
			Found: needed("append:_to_all_members", "was acknowledged"),
		},
		{
			Name:  "a line is flushed before success is reported",
			Plant: []Patch{{"engine/ledger/append.go", "l.flush(copies)", "func() error { if e, _ := format.Decode(line[:len(line)-1]); MUTANT && e.Members == nil { return nil }; return OLD }()"}},
			Found: needed("append:_flushed", "were shown, now"),
		},
		{
			Name:  "after an error nothing is reported as written",
			Plant: []Patch{{"engine/ledger/append.go", "return nil, l.kill(err, true)", "if !MUTANT { OLD }"}},
			Found: needed("append:_an_error_is_one", "was acknowledged"),
		},
		{
			Name:  "nothing is tried again in place",
			Plant: []Patch{{"engine/ledger/append.go", "l.write(p.members, line)", "func() error { err := OLD; if err != nil && MUTANT { err = OLD }; return err }()"}},
			Found: needed("append:_not_tried_again_in_place", "healthy disks are refused"),
		},
		{
			Name:  "after an error the handle is dead",
			Plant: []Patch{{"engine/ledger/append.go", "l.dead = dead", "if !MUTANT { OLD }"}},
			Found: needed("append:_the_handle_is_dead", "a process goes on"),
		},
	}
}

func ofMembers() []Mutant {
	return []Mutant{
		{
			Name: "only members by their own last epoch line count",
			Plant: []Patch{{
				"engine/ledger/open.go", "p.warnOfBroken()",
				`if len(p.members) == 0 && MUTANT {
					p.members = copies
					for _, c := range copies {
						p.epoch.Copies = append(slices.Clip(p.epoch.Copies), c.seat())
					}
				}
				OLD`,
			}},
			Found: needed("alone:_members_only", "were shown, now"),
		},
		{
			Name:  "members do not change if the witness knows of another epoch",
			Plant: []Patch{{"engine/ledger/witness.go", "return h.latest != nil, err\n", "if !MUTANT { return h.latest != nil, err }\n"}},
			With:  "the witness is heard before anything is shown",
			Found: needed("alone:_the_witness_is_asked", "witnessed as"),
		},
		{
			Name:  "who goes on alone says so first",
			Plant: []Patch{{"engine/ledger/degrade.go", "witnessed, err := l.confirm(ctx, p)", "if MUTANT { return p, nil }; OLD"}},
			Found: needed("alone:_the_epoch_line_first", "was acknowledged"),
		},
		{
			Name:  "an epoch line is on disk before the witness hears of it",
			Plant: []Patch{{"engine/ledger/append.go", "l.flush(copies)", "func() error { if e, _ := format.Decode(line[:len(line)-1]); MUTANT && e.Members != nil { return nil }; return OLD }()"}},
			Found: needed("alone:_the_epoch_line_is_on_disk_before_the_witness_hears_of_it", "healthy disks are refused"),
		},
		{
			Name: "a new copy is on disk before it counts",
			Plant: []Patch{
				{"engine/ledger/join.go", "l.replace(at, t.As(format.NewID()))", "func() error { if MUTANT { return overwrite(l.files, at.File(), t.As(format.NewID())) }; return OLD }()"},
				{"engine/ledger/probe.go", "err := files.Sync(v.File())", "if MUTANT && !slices.ContainsFunc(v.found.text.Epochs, func(e Epoch) bool { return e.Seated(v.found.text.Copy) }) { return }; OLD"},
			},
			Found: needed("join:_on_disk_before_it_counts", "healthy disks are refused"),
		},
		{
			Name:  "what is in a newcomer's place is renamed",
			Plant: []Patch{{"engine/ledger/join.go", "if err != nil || !found {", "if err != nil || !found || MUTANT {"}},
			Found: needed("join:_set_aside", "is gone"),
		},
		{
			Name:  "the old members hear of a newcomer first",
			Plant: []Patch{{"engine/ledger/degrade.go", "for _, copies := range [][]*copyAt{first, others} {", "if MUTANT { first, others = others, first }; OLD"}},
			Found: needed("join:_the_old_members_first", "healthy disks are refused"),
		},
		{
			Name:  "who keeps one copy says so in an epoch line",
			Plant: []Patch{{"engine/ledger/keep.go", "e := kept.text.Epoch()", "if MUTANT { return nil }; OLD"}},
			Found: needed("keep:_the_epoch_line", "after keep"),
		},
		{
			Name: "and says so first",
			Plant: []Patch{{
				"engine/ledger/keep.go", "if err := l.claim(ctx, kept, by); err != nil {\n\t\treturn err\n\t}\n\tif err := l.giveUp(loss); err != nil {",
				`claim, giveUp := func() error { return l.claim(ctx, kept, by) }, func() error { return l.giveUp(loss) }
				if MUTANT {
					claim, giveUp = giveUp, claim
				}
				if err := claim(); err != nil {
					return err
				}
				if err := giveUp(); err != nil {`,
			}},
			Found: needed("keep:_the_epoch_line_first", "healthy disks are refused"),
		},
		{
			Name:  "the copies that are given up are set aside",
			Plant: []Patch{{"engine/ledger/keep.go", "if err := l.setAside(Location{Directory: path.Dir(other.File)}); err != nil {", "if MUTANT { break }; OLD"}},
			Found: needed("keep:_the_others_set_aside", "disagree"),
		},
	}
}

func ofTheWitness() []Mutant {
	return []Mutant{
		{
			Name:  "the witness is asked before anything follows an epoch line",
			Plant: []Patch{{"engine/ledger/witness.go", "if !p.unwitnessed() {", "if !p.unwitnessed() || MUTANT {"}},
			Found: needed("witness:_asked_behind_an_epoch_line", "were shown, now"),
		},
		{
			Name:  "the witness is told of each epoch",
			Plant: []Patch{{"engine/ledger/witness.go", "if err := l.places.Witness.Write(", "if MUTANT { return nil }; OLD"}},
			Found: needed("witness:_told", "were shown, now"),
		},
		{
			Name: "readers do not rely on an epoch that others may overrule",
			Plant: []Patch{
				{"engine/ledger/reading.go", "case p.unwitnessed():", "case p.unwitnessed() && !MUTANT:"},
				{"engine/ledger/reading.go", "if p.unwitnessed() && !known", "if !MUTANT && p.unwitnessed() && !known"},
			},
			Found: needed("witness:_readers_too", "was shown, now"),
		},
		{
			Name:  "the highest mark counts",
			Plant: []Patch{{"engine/ledger/witness.go", "case last == nil || s.Tag.N > last.Tag.N:", "case last == nil || MUTANT || s.Tag.N > last.Tag.N:"}},
			Found: unit("engine/ledger", "TestAMarkIsWrittenAsItIsRead", "keep_test.go"),
		},
	}
}

func ofRewrites() []Mutant {
	return []Mutant{
		{
			Name:  "nothing is rewritten unless all members are present and equal",
			Plant: []Patch{{"engine/ledger/rewrite.go", "return len(p.missing) == 0 && p.level()", "if MUTANT { return true }; OLD"}},
			Found: needed("rewrite:_all_are_equal", "healthy disks are refused"),
		},
		{
			Name:  "what is live stays",
			Plant: []Patch{{"engine/ledger/format/rewrite.go", "stays := x.live[i] > 0", "OLD; if f, _ := cutLine(t.Line(i)); MUTANT && !(isEpochLine(f.facts) && t.Epoch().Seq != f.seq) { stays = false }"}},
			Found: needed("rewrite:_what_is_live_stays", "healthy disks are refused"),
		},
		{
			Name:  "epoch lines stay",
			Plant: []Patch{{"engine/ledger/format/rewrite.go", "stays := x.live[i] > 0", "OLD; if f, _ := cutLine(t.Line(i)); MUTANT && isEpochLine(f.facts) && t.Epoch().Seq != f.seq { stays = false }"}},
			Found: needed("rewrite:_epoch_lines_stay", "history"),
		},
		{
			Name:  "a rewritten file is a new one",
			Plant: []Patch{{"engine/ledger/rewrite.go", "l.replace(c.Location, c.text.Without(kept, left))", "func() error { if MUTANT { return overwrite(l.files, c.File(), c.text.Without(kept, left)) }; return OLD }()"}},
			Found: needed("rewrite:_a_new_file", "healthy disks are refused"),
		},
		{
			Name:  "dead lines go to history first",
			Plant: []Patch{{"engine/ledger/rewrite.go", "host.WriteFile(l.files, name, c.text.History(left), fileMode)", "func() error { if MUTANT { return nil }; return OLD }()"}},
			Found: needed("rewrite:_history_first", "history"),
		},
		{
			Name:  "one copy is rewritten after the other",
			Plant: []Patch{{"engine/ledger/rewrite.go", `p.warn("%s was not shortened: %v", c.File(), err)`, "OLD; if MUTANT { continue }"}},
			Found: unit("engine/ledger", "TestOneCopyIsRewrittenAfterTheOther", "rewritten as well"),
		},
		{
			Name:  "ten histories stay",
			Plant: []Patch{{"engine/ledger/rewrite.go", "all[:max(0, len(all)-keptHistories)]", "func() []uint64 { if MUTANT { return all }; return OLD }()"}},
			Found: unit("engine/ledger", "TestDeadLinesGoToHistory", "rewrite_test.go"),
		},
	}
}

func ofCreation() []Mutant {
	return []Mutant{
		{
			Name:  "a ledger is created only where there is no file",
			Plant: []Patch{{"engine/ledger/create.go", "if len(there) > 0 {", "if len(there) > 0 && !MUTANT {"}},
			Found: needed("create:_no_file", "second ledger"),
		},
		{
			Name:  "a ledger is created only where no witness knows one",
			Plant: []Patch{{"engine/ledger/create.go", "if mark != nil && !c.New {", "if mark != nil && !c.New && !MUTANT {"}},
			Found: needed("create:_no_witness", "second ledger"),
		},
		{
			Name: "a ledger is created only with every place at hand",
			Plant: []Patch{
				{"engine/ledger/create.go", "err = l.makeRoom(c.On)", "if MUTANT { c.On = l.atHand(c.On) }; OLD"},
				{"engine/ledger/create.go", "if err := at.Mounted(l.files); err != nil {\n\t\t\tfailed", "if err := at.Mounted(l.files); err != nil && !MUTANT {\n\t\t\tfailed"},
			},
			Found: needed("create:_all_places", "second ledger"),
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
			Name:  "a member that does not hold it is told of",
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
