package world

// LinkID tells a link from another one, whatever zone it is in: names are not
// unique on the sled.
type LinkID struct{ Name, MAC string }

// ID is the link's.
func (l *Link) ID() LinkID { return LinkID{l.Name, l.MAC} }

// lock is the file whose lock those have who hold the link. No zone's name begins
// with a dot.
func (id LinkID) lock() string { return "/locks/.link-" + id.Name + "-" + id.MAC }
