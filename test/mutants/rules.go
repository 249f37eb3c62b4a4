package mutants

import (
	"slices"
)

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
						p.epoch.Copies = append(slices.Clip(p.epoch.Copies), c.ref())
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
			Name:  "a process that continues alone writes that first",
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
				{"engine/ledger/probe.go", "v.flushed.Go(func() error { return files.Sync(v.File()) })", "if data, _ := host.ReadFile(files, v.File()); MUTANT { if t, err := format.Verify(data, nil); err == nil && !slices.ContainsFunc(t.Epochs, func(e Epoch) bool { return e.Seated(t.Copy) }) { return } }; OLD"},
			},
			Found: needed("join:_on_disk_before_it_counts", "healthy disks are refused"),
		},
		{
			Name:  "what is in a new member's place is renamed",
			Plant: []Patch{{"engine/ledger/join.go", "if err != nil || !found {", "if err != nil || !found || MUTANT {"}},
			Found: needed("join:_set_aside", "is gone"),
		},
		{
			Name:  "the old members hear of a new member first",
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
			Name:  "the witness gets each epoch",
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
