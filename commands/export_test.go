package commands

// Draw replaces the source of random ids, so that a dry run and the run after
// it can be made to choose the same.
func (e *Env) Draw(draw func() string) { e.draw = draw }
