package inventory_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/sledctl/sledctl/engine/inventory"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/test/hosttest"
)

// service is the manifest of one that does nothing. Behind a colon its name may have
// a second instance, which is enabled, while the first is not.
func service(name string, enabled bool) string {
	on := "false"
	if enabled {
		on = "true"
	}
	if name, instance, ok := strings.Cut(name, ":"); ok {
		return strings.Replace(service(name, false), "</service>", `<instance name="`+instance+`" enabled="true"/></service>`, 1)
	}
	return `<?xml version="1.0"?>
<!DOCTYPE service_bundle SYSTEM "/usr/share/lib/xml/dtd/service_bundle.dtd.1">
<service_bundle type="manifest" name="it"><service name="` + name + `" type="service" version="1"><create_default_instance enabled="` + on + `"/>
<exec_method type="method" name="start" exec=":true" timeout_seconds="0"/><exec_method type="method" name="stop" exec=":true" timeout_seconds="0"/>
<property_group name="startd" type="framework"><propval name="duration" type="astring" value="transient"/></property_group></service></service_bundle>`
}

// Who keeps zones, links and pools of their own is named, while they may be at
// work and these are what we would use.
func TestOtherOwnersAreNamed(t *testing.T) {
	for name, c := range map[string]struct {
		options sim.Options
		service string
		enabled bool
		named   string
	}{
		"nobody":                           {sim.Options{}, "site/other", true, ""},
		"the sled agent":                   {sim.Options{}, "oxide/sled-agent", true, "svc:/oxide/sled-agent:default is online"},
		"a sled agent that is off":         {sim.Options{}, "oxide/sled-agent", false, ""},
		"another instance of it":           {sim.Options{}, "oxide/sled-agent:second", true, "svc:/oxide/sled-agent:second is online"},
		"one whose name is longer":         {sim.Options{}, "oxide/sled-agent-sim", true, ""},
		"vmadmd, over its pool":            {sim.Options{Mode: world.SmartOS, M2: -1, U2: -1}, "system/smartdc/vmadmd", true, "svc:/system/smartdc/vmadmd:default is online"},
		"vmadmd, next to pools of sledctl": {sim.Options{Mode: world.SmartOS, M2: 2, U2: 4}, "system/smartdc/vmadmd", true, ""},
		"vmadmd, which is off":             {sim.Options{Mode: world.SmartOS, M2: -1, U2: -1}, "system/smartdc/vmadmd", false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := sim.New(c.options, hosttest.Files)
				defer s.Close()
				if err := host.WriteFile(s.Host().Files(), "/var/it.xml", []byte(service(c.service, c.enabled)), 0o644); err != nil {
					t.Fatal(err)
				}
				r, err := s.Host().Run(t.Context(), host.Command{Program: "svccfg", Args: []string{"import", "/var/it.xml"}})
				if err != nil || r.Exit != 0 {
					t.Fatalf("%v, %s", err, r.Stderr)
				}
				err = inventory.Look(t.Context(), s.Host(), inventory.Want{Parts: []inventory.Part{inventory.Rival}}).Know(inventory.Rival)
				rival, there := errors.AsType[*inventory.RivalError](err)
				if there != (c.named != "") || there && (!strings.HasPrefix(rival.Error(), c.named) || !strings.Contains(rival.Hint(), rival.Service)) || !there && err != nil {
					t.Errorf("%v, want %q", err, c.named)
				}
			})
		})
	}
}

// Who cannot be asked may be at work.
func TestOwnersThatCannotBeSeenAreNotAbsent(t *testing.T) {
	s := newSled(t)
	err := s.World().Update(t.Context(), func(tx *world.Tx) error {
		tx.Arm(world.Fault{Name: world.FaultFail, Match: "svcs", Exit: 1, Text: "svcs: Could not bind to repository server: repository server unavailable."})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	err = inventory.Look(t.Context(), s.Host(), inventory.Want{Parts: []inventory.Part{inventory.Rival}}).Know(inventory.Rival)
	if !errors.Is(err, host.ErrTransient) {
		t.Errorf("%v", err)
	}
}
