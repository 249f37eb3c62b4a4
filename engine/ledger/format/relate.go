package format

import "fmt"

// Relation is what a text is to the best one.
type Relation int

// The relations.
const (
	Equal    Relation = iota
	Behind            // an earlier state of the best
	DeadTail          // earlier, and then something that was never acknowledged
	Forked            // neither: facts that someone relies on would be lost
)

// Relate returns what c is to best, and why the two cannot be reconciled.
func Relate(best, c *Text) (Relation, string) {
	at := c.Head()
	switch {
	case best.Ledger != c.Ledger:
		return Forked, fmt.Sprintf("they are of two ledgers, %s and %s", best.Ledger, c.Ledger)
	case at == best.Head():
		return Equal, ""
	case best.Holds(at):
		return Behind, ""
	case !sameEpochs(c.Epochs, best.Epochs):
		return Forked, "their members were changed on both sides"
	}
	k := len(c.Epochs)
	over := k < len(best.Epochs) // c's last epoch has ended
	if at.Seq < best.Base.Seq && (!over || at.Seq < best.Epochs[k].Seq) {
		return Behind, "" // the rewrite of best has left the line out
	}
	if !over {
		return Forked, fmt.Sprintf("the line of %v occurs on one side only", at)
	}
	if at.Seq >= best.Epochs[k].Seq && c.agrees(best, best.Epochs[k]) && !best.Epoch().Seated(c.Copy) {
		return DeadTail, ""
	}
	return Forked, fmt.Sprintf("one continued with seq %d where the other begins epoch %d", best.Epochs[k].Seq, best.Epochs[k].N)
}

// Better reports whether t counts rather than than: the one with more epoch lines
// does, then the one with more lines.
func (t *Text) Better(than *Text) bool {
	if len(t.Epochs) != len(than.Epochs) {
		return len(t.Epochs) > len(than.Epochs)
	}
	return t.Head().Seq > than.Head().Seq
}

// agrees reports whether t is what best was when best's epoch began: that line's
// hash is made over the one before it.
func (t *Text) agrees(best *Text, began Epoch) bool {
	before, ok := t.HashAt(began.Seq - 1)
	i, found := best.find(began.Seq)
	return ok && found && Sum([]byte(before), best.Line(i)[hashEnd:]) == began.hash
}
