package fence

import "fmt"

// Coming is a generation that comes to a sled, its target, while the one before it runs on
// another, its source. The VM is on one of the two.
type Coming struct {
	Run          // on the target
	Came    bool // the target has reported that it has come
	Stayed  bool // the target has reported that it has not come, or has ended there
	Emptied bool // the source has reported that it has the VM no longer; Evidence.Silent is from after that
}

// DecideComing says whether a generation has come, by which the one before it has ended; else
// whether it has ended itself.
//
// A target that does not answer may have it, or get it yet: a source that still has the VM can let
// it go at any moment. So nothing but the target's own report proves its end, as long as the source
// has not reported that it has the VM no longer; or a person's statement that the target never runs
// again, by which nothing can come there.
func DecideComing(c Coming, e Evidence) (came bool, v Verdict) {
	switch {
	case c.Came:
		return true, Verdict{Reason: fmt.Sprintf("it has come to sled %s", c.Sled)}
	case c.Stayed:
		return false, Verdict{Proof: Confirmed, Reason: fmt.Sprintf("sled %s reported that it has not come", c.Sled)}
	case e.Lost == c.Sled && e.Lost != "": // nothing comes there any longer, and what did has ended
		return false, Decide(c.Run, e)
	case !c.Emptied:
		return false, Verdict{Reason: fmt.Sprintf("sled %s has not reported whether it has come", c.Sled)}
	}
	return false, Decide(c.Run, e)
}
