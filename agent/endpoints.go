package agent

import (
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/agent/api"
	"github.com/sledctl/sledctl/sled/instance/record"
)

// endpoint is one operation of the API.
type endpoint struct {
	method string
	path   string // with {parameters}
	parts  []string
	// id and summary are its texts in the document.
	id, summary string
	since       api.Version // the first version that has it
	// body is what is to be sent, and reply what is answered: values of the types;
	// nil: nothing.
	body, reply any
	query       []string // the keys that it takes
	serve       func(*server, call) (any, *api.Error)
	// stream, instead, answers by itself, and may go on.
	stream func(*server, http.ResponseWriter, call) *api.Error
	// file is the media type of the file that it sends; empty: it sends none.
	file string
	// keeper says that a request says by a header who asks.
	keeper bool
	// open ones need no version: they are asked by people and by probes.
	open bool
}

// endpoints are all of them. Those below /vmms that have an id with vmm_ are
// omicron's (sled-agent/api/src/lib.rs), the others are sledctl's own.
func endpoints() []endpoint {
	first := api.Version{Major: 1}
	all := []endpoint{
		{method: "GET", path: "/vmms", id: "vmm_list", summary: "All VMs, a page at a time", since: first, reply: api.Page{},
			query: []string{"limit", "page_token", "name", "instance_id", "state"}, serve: (*server).list},
		{method: "PUT", path: "/vmms/{propolis_id}", id: "vmm_register", summary: "Make a VM known, so that it can be run", since: first,
			body: api.Register{}, reply: api.SledVMState{}, serve: (*server).register},
		{method: "DELETE", path: "/vmms/{propolis_id}", id: "vmm_unregister", summary: "Remove a VM, without asking its guest to shut down", since: first,
			reply: api.Unregistered{}, serve: (*server).unregister},
		{method: "GET", path: "/vmms/{propolis_id}/state", id: "vmm_get_state", summary: "What a VM is now", since: first, reply: api.SledVMState{}, serve: (*server).state},
		{method: "PUT", path: "/vmms/{propolis_id}/state", id: "vmm_put_state", summary: "Have a VM run, stopped or reset", since: first,
			body: api.PutState{}, reply: api.StatePut{}, serve: (*server).putState},
		{method: "GET", path: "/vmms/{propolis_id}/events", id: "vmm_events", summary: "What a VM is and becomes, as server-sent events", reply: api.VM{},
			query: []string{"after"}, stream: (*server).events, open: true},
		{method: "GET", path: "/events", id: "events", summary: "What all VMs are and become, as server-sent events", reply: api.VM{},
			query: []string{"after"}, stream: (*server).events, open: true},
		{method: "GET", path: documentPath, id: "openapi", summary: "This document", serve: (*server).describe, open: true},
		{method: "GET", path: "/healthz", id: "health", summary: "That it answers", reply: api.Health{}, serve: (*server).health, open: true},
		{method: "GET", path: "/metrics", id: "metrics", summary: "Figures about the agent, as Prometheus reads them", stream: (*server).metrics, open: true},
	}
	all = withSled(withBundles(withLogs(withInstances(withVPCs(withVMs(all))))))
	for i := range all {
		all[i].parts = strings.Split(all[i].path, "/")
		all[i].keeper = all[i].method != http.MethodGet && slices.Contains([]string{"instances", "keeper", "vmms"}, all[i].parts[1])
	}
	return all
}

// match says whether the parts of a path are those of the endpoint.
func (e endpoint) match(path []string) bool {
	if len(e.parts) != len(path) {
		return false
	}
	for i, part := range e.parts {
		if part != path[i] && (part == "" || part[0] != '{' || path[i] == "") {
			return false
		}
	}
	return true
}

// params are what stands for the parameters of the endpoint in a path that
// matches.
func (e endpoint) params(path []string) map[string]string {
	params := make(map[string]string, 2)
	for i, part := range e.parts {
		if name, is := strings.CutPrefix(part, "{"); is {
			params[strings.TrimSuffix(name, "}")], _ = url.PathUnescape(path[i]) // net/http has read it before
		}
	}
	return params
}

// route finds the endpoint of a request. As with dropshot, the version is looked
// at before the path, and an endpoint that a version does not have is not found.
func (s *server) route(c *call) (endpoint, *api.Error) {
	spoken, refused := api.ParseAPIVersion(c.Header.Get(api.VersionHeader))
	path, there := strings.Split(c.URL.EscapedPath(), "/"), false
	for _, e := range s.endpoints {
		if !e.match(path) || !e.open && (refused != nil || spoken.Less(e.since)) {
			continue
		}
		if there = true; e.method == c.Method {
			c.params, c.version = e.params(path), spoken
			return e, nil
		}
	}
	switch {
	case there:
		return endpoint{}, &api.Error{Status: http.StatusMethodNotAllowed, Message: http.StatusText(http.StatusMethodNotAllowed)}
	case refused != nil:
		return endpoint{}, refused
	}
	return endpoint{}, api.StatusOnly(http.StatusNotFound, "", nil)
}

// asks is the keeper that a request says it is from; empty: it does not say.
func (c call) asks() (record.Keeper, *api.Error) {
	text := c.Header.Get(api.KeeperHeader)
	if text == "" {
		return "", nil
	}
	k, err := record.ParseKeeper(text)
	if err != nil {
		return "", api.BadRequest(fmt.Sprintf("header %q: %v", api.KeeperHeader, err))
	}
	return k, nil
}

// migration is the id of a migration that a query names; empty: it names none.
func (c call) migration() (string, *api.Error) {
	text := c.URL.Query().Get("migration_id")
	if text == "" {
		return "", nil
	}
	id, err := uuid.Parse(text)
	if err != nil {
		return "", api.BadRequest(fmt.Sprintf("migration_id %q: want a UUID", text))
	}
	return id.String(), nil
}

// migrates is the migration by which an instance is to come; nil: it is made here.
func (c call) migrates() (*record.Migration, *api.Error) {
	id, refused := c.migration()
	from := c.URL.Query().Get("migrate_from")
	switch at, err := netip.ParseAddrPort(from); {
	case refused != nil:
		return nil, refused
	case id == "" && from == "":
		return nil, nil
	case id == "" || from == "":
		return nil, api.BadRequest("migrate_from, migration_id: want both, or none")
	case err != nil || at.Port() == 0:
		return nil, api.BadRequest(fmt.Sprintf("migrate_from %q: want ADDRESS:PORT", from))
	default:
		return &record.Migration{ID: id, Source: at.String()}, nil
	}
}

// sameID refuses a document that is about another instance than the path.
func sameID(path, document string) error {
	id, err := uuid.Parse(path)
	of, none := uuid.Parse(document)
	if err != nil || none != nil || id == of {
		return nil
	}
	return &record.InputError{Field: "id", Value: document, Want: id.String() + ", as the path says"}
}
