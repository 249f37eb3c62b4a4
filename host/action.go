package host

// ForAction is h as one action of a plan uses it: if h is traced, its events
// carry the action's id.
func ForAction(h Host, id string) Host {
	if a, ok := h.(interface{ forAction(id string) Host }); ok {
		return a.forAction(id)
	}
	return h
}
