package api

import (
	"github.com/sledctl/sledctl/sled/events"
	"github.com/sledctl/sledctl/sled/status"
)

// Status is how the sled is, as status prints it in JSON.
type Status struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	status.Status
}

// Events are operations, oldest first, as events prints them in JSON.
type Events struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Items      []events.Event `json:"items"`
}
