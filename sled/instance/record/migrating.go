package record

import (
	"path"
	"strings"
)

// Migration is one that the instance is in the middle of.
type Migration struct {
	ID string `json:"id"` // a UUID, new with each try
	// Source is where the source's Propolis answers, IP:PORT. It is set on the
	// target.
	Source string `json:"source,omitempty"`
	// Target are the words that run the target's sledctl. They are set on the
	// source.
	Target []string `json:"target,omitempty"`
	// Departed says that the machine runs on the target: what is left here goes.
	Departed bool `json:"departed,omitempty"`
	// Offline says that the VM is stopped meanwhile: no Propolis knows of it, and what is on record here and
	// there is all that says where the instance may start.
	Offline bool `json:"offline,omitempty"`
}

// Peer is the other sled, as this one knows it.
func (m Migration) Peer() string {
	if m.Source != "" {
		return m.Source
	}
	return strings.Join(m.Target, " ")
}

// Direction says which way the machine goes.
func (m Migration) Direction() string {
	if m.Source != "" {
		return "it arrives by a migration from " + m.Source
	}
	return "it departs by a migration to " + m.Sled()
}

// Sled names the other sled: the target's as it stands in the words that reach it, which is
// the machine of ssh, the sled of sled list, or the directory of a simulated sled. Other
// words are all of them.
func (m Migration) Sled() string {
	words := m.Target
	switch {
	case len(words) == 3 && words[0] == "ssh":
		return words[1]
	case len(words) == 3 && words[1] == "--sled":
		return words[2]
	case len(words) == 3 && words[1] == "--host" && strings.HasPrefix(words[2], "sim:"):
		return path.Base(words[2])
	}
	return m.Peer()
}

func (m *Migration) Arrives() bool { return m != nil && m.Source != "" }

func (m *Migration) Departs() bool { return m != nil && m.Source == "" }

// Is reports whether it is the one of this id, with the VM stopped.
func (m *Migration) Is(id string) bool { return m != nil && m.Offline && m.ID == id }

// How a migration stands with an instance of this sled.
const (
	Arriving  = "arriving"
	Arrived   = "arrived"
	Departing = "departing"
)

// Migrating tells the migration that an instance is in, or came by; false: none.
func (r Record) Migrating() (id, state, peer string, any bool) {
	switch m := r.Migration; {
	case m.Arrives():
		return m.ID, Arriving, m.Peer(), true
	case m.Departs():
		return m.ID, Departing, m.Peer(), true
	case r.Incarnation != nil && r.Incarnation.Migration != "":
		return r.Incarnation.Migration, Arrived, "", true
	case r.Incarnation == nil && r.Came != "":
		return r.Came, Arrived, "", true
	}
	return "", "", "", false
}

// CameBy reports whether r is that of an instance that a migration has brought, which
// it was not before: also of one that was lost here before that was recorded, and
// was rebuilt.
func (r Record) CameBy(old Record, from *Migration) bool {
	if r.Incarnation == nil {
		return false
	}
	return from.Arrives() || r.Incarnation.Migration != "" && (old.Incarnation == nil || old.Incarnation.Migration != r.Incarnation.Migration)
}

// Remains names what an instance has on the sled from which its VM has departed,
// as long as none of it is removed.
func (r Record) Remains() (names []string) {
	if r.Incarnation == nil {
		return nil
	}
	for _, o := range r.Objects() {
		names = append(names, o.Kind+" "+o.Name)
	}
	return names
}
