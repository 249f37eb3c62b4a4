package ledger

// rule is one of the rules that are known to be needed because the check of
// this package finds what goes wrong without it. A Ledger without a rule exists
// in that check only.
type rule uint64

const (
	// What is there.
	ruleMounted rule = 1 << iota // a dataset that is not mounted holds nothing
	ruleTwins                    // one copy twice is an error

	// Open.
	ruleTorn   // a torn last line is ignored, and cut by writers
	ruleEpochs // the best copy is that with the most epoch lines
	ruleBase   // what a rewrite of the best copy has left out may be another's head
	ruleTail   // what was never acknowledged does not count, and is in nobody's way
	ruleFlush  // what is believed is flushed first
	ruleAll    // a reader reports what all present members hold
	ruleRefuse // a writer refuses while a member is missing
	ruleRaise  // a writer brings shorter members up

	// Append.
	ruleEvery  // to all members
	ruleSync   // flushed before success is reported
	ruleFailed // after an error nothing is reported as written

	// Alone.
	ruleMember // only those that are members by their own last epoch line
	ruleAsk    // only if the witness knows of nothing else
	ruleAlone  // the epoch line comes before any fact

	// Join.
	ruleAside // a file that is there is renamed, not overwritten
	ruleOld   // the old members hear of it first

	// Witness.
	ruleConfirm // asked before anything follows an epoch line
	ruleTell    // told of each epoch

	// Rewrite.
	ruleLevel   // only while all members are present and equal
	ruleKeep    // epoch lines and live facts stay
	ruleWhole   // a new file, flushed, then renamed
	ruleHistory // dead lines go to history first

	// Create.
	ruleNoFile    // only where there is no file
	ruleNoMark    // only where no witness knows a ledger
	ruleAllPlaces // only with every place at hand

	ruleLock      // one writer at a time
	ruleGivenUp   // keep: the others are set aside
	ruleEpochLine // keep: an epoch line first

	allRules = iota
)

// lacks says whether x is among the rules r that are left out.
func (r rule) lacks(x rule) bool { return r&x != 0 }
