package operation

// By is who began an operation, as its process saw it. Nothing of it is proven.
type By struct {
	User string `json:"user"` // the name of the real user
	UID  int    `json:"uid"`
	// From is who that was before, and from where: sudo's user, the client of a
	// login over the network.
	From string `json:"from,omitempty"`
	Via  Via    `json:"via"`
}

// Via is how an operation was asked for.
type Via string

// The ways.
const (
	ViaCommand Via = "cli"
	ViaAgent   Via = "agent"
	ViaService Via = "smf"
)
