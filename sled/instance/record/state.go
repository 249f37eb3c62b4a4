package record

// State is Propolis' word for an instance in lower case, or absent or unknown.
type State = string

// The states that are not Propolis' own, and those that are decided on.
const (
	Absent   State = "absent"
	Unknown  State = "unknown"
	Creating State = "creating"
	Running  State = "running"
	Stopped  State = "stopped"
	Stopping State = "stopping"
	Failed   State = "failed"
)
