package ledger

// rule is one of the rules that are known to be needed because the check of
// this package finds what goes wrong without it. A Ledger without a rule exists
// in that check only.
//
// Some have no switch, since nothing that the check knows breaks without them:
//
//   - A line's hash finds bytes that changed on the disk, which do not happen in
//     the check; tests change every byte and see it found.
//   - A line that one member holds is rolled forward. Dropped, it would be missed
//     only by who has read it while the other members were away, and was warned.
//   - Readers lock. Without, they see what they see when a writer was killed.
//   - One copy is rewritten after the other, and ten histories stay: a file is
//     replaced whole, and its dead lines are in the others' history too.
//   - The highest mark counts, and two of one number are an error: that is the
//     witness's own, and tested where it lives.
//   - Nothing joins as a side effect: the check has writers that do it.
type rule uint64

const (
	// What is there.
	ruleMounted rule = 1 << iota // a dataset that is not mounted holds nothing
	ruleTwins                    // one copy twice is an error
	ruleOneLine                  // an append is one line and one write, however many facts it holds

	// Open.
	ruleTorn    // a torn last line is ignored
	ruleBare    // one that has lost its newline counts
	ruleDamage  // what no writer leaves is not taken for a torn line
	ruleCut     // and cut by writers
	ruleEpochs  // the best copy is that with the most epoch lines
	ruleLongest // and, of those, the one with the highest number
	ruleBehind  // a copy that the best one has been is in nobody's way
	ruleBase    // what a rewrite of the best copy has left out may be another's head
	ruleTail    // what was never acknowledged does not count, and is in nobody's way
	ruleFlush   // what is believed is flushed first
	ruleWarn    // a reader warns of members that are missing
	ruleRefuse  // a writer refuses while a member is missing
	ruleRaise   // a writer brings shorter members up
	ruleRaised  // by a new file, flushed, then renamed, if by more than a line

	// Append.
	ruleAgain  // after what is there was looked at again
	ruleEvery  // to all members
	ruleSync   // flushed before success is reported
	ruleFailed // after an error nothing is reported as written
	ruleOnce   // and nothing is tried again in place
	ruleDead   // and the handle is dead

	// Alone.
	ruleMember // only those that are members by their own last epoch line
	ruleAsk    // no change of the members if the witness knows of another
	ruleAlone  // the epoch line comes before any fact
	ruleSure   // an epoch line is on disk before the witness hears of it

	// Join.
	ruleAside   // a file that is there is renamed, not overwritten
	rulePlanted // a new copy is on disk before it counts
	ruleOld     // the old members hear of it first

	// Witness.
	ruleConfirm // asked before anything follows an epoch line
	ruleTell    // told of each epoch
	ruleDoubt   // readers do not rely on an epoch that others may overrule

	// Rewrite.
	ruleLevel   // only while all members are present and equal
	ruleKeep    // live facts stay
	ruleStay    // epoch lines stay
	ruleWhole   // a new file, flushed, then renamed
	ruleHistory // dead lines go to history first

	// Create.
	ruleNoFile    // only where there is no file
	ruleNoMark    // only where no witness knows a ledger
	ruleAllPlaces // only with every place at hand

	ruleLock      // one writer at a time
	ruleGivenUp   // keep: the others are set aside
	ruleEpochLine // keep: an epoch line says so
	ruleFirst     // keep: and is written before anything is set aside

	// Reading.
	ruleBest     // what the best copy holds is shown, not what all hold
	ruleMark     // a member that does not hold it is told of
	ruleBegun    // so are ends that are all torn
	ruleEnds     // ends that are all damaged are refused
	ruleHeard    // the witness has been heard before anything is shown
	ruleForeign  // marks of another ledger, and none of this one, refuse it
	ruleDisks    // it is asked again when disks come or go
	ruleSeen     // what this boot has acknowledged is there, or nothing is shown
	ruleClears   // and if it is, ends mean nothing
	ruleUnstamp  // a change of the members takes the stamp's word back first
	ruleOutlived // lines that a history file has are there, or nothing is shown
	ruleSpare    // a file that is replaced stays readable

	allRules = iota
)

// lacks says whether x is among the rules r that are left out.
func (r rule) lacks(x rule) bool { return r&x != 0 }
