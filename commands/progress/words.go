package progress

import (
	"regexp"
	"strings"
	"sync"

	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/engine/plan"
)

// Words say what an action does: "clone the zone from propolis_base_101964cb_1". A zone of
// an instance, and its dataset, have no name here: they are the instance's.
func Words(a plan.Action) string {
	text := verbWords(a)
	switch {
	case a.Change == plan.Wait && a.Why != "":
		return text + ": " + a.Why
	case strings.HasPrefix(a.Why, "from "):
		return text + " " + a.Why
	}
	return text
}

// special says what the verbs do that do not read as they are written.
func special() map[string]string {
	return map[string]string{
		"bundle.take":               "keep the logs in a bundle",
		"instance.send":             "move the VM's memory",
		"ipadm.await-address":       "wait for the address",
		"ipadm.create-address":      "create the control address",
		"propolis.arrive":           "take in the VM's memory",
		"propolis.await-http":       "wait for Propolis to answer",
		"propolis.await-state":      "wait for the VM",
		"propolis.ensure":           "create the VM",
		"propolis.run":              "start the VM",
		"propolis.stop":             "stop the VM",
		"propolis.reboot":           "reboot the VM",
		"propolis.power-off":        "power the VM off",
		"propolis.nmi":              "send the VM an NMI",
		"secret.keep":               "keep the VM's secrets",
		"secret.drop":               "remove the VM's secrets",
		"smf.await":                 "wait for the zone's services",
		"smf.enable":                "start Propolis",
		"smf.disable":               "stop Propolis",
		"smf.seed":                  "seed the zone's services",
		"smf.write-profile":         "write what Propolis needs to know",
		"zfs.rollback":              "set the zone back to its clone",
		"zfs.snapshot":              "take a snapshot of the image",
		"zfs.snapshot-tree":         "keep the zone as it was cloned",
		"zfs.destroy-snapshots":     "destroy the snapshots",
		"zone.remove-home":          "remove the zonepath",
		"zone.remove-configuration": "remove the zone's configuration",
	}
}

// verbWords are Words without the reason.
func verbWords(a plan.Action) string {
	verb := a.Step.Verb()
	if text, ok := special()[verb]; ok {
		return text
	}
	_, does, _ := strings.Cut(verb, ".")
	kind, name, _ := strings.Cut(a.Object, " ")
	if kind == "vnic" {
		kind = "VNIC"
	}
	does, _, _ = strings.Cut(strings.ReplaceAll(does, "-", " "), " "+kind) // create-etherstub
	text := does + " the " + kind
	if ofRun().MatchString(a.Object) {
		return text
	}
	name = mounted().ReplaceAllString(terminal.ShortPools(nil)(name), "$1")
	return strings.TrimRight(text+" "+name, " ")
}

// ofRun is a zone, a dataset of one, or one below it, that is called by the id of an
// instance's run.
var ofRun = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(zone |dataset .*/).*[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}(/[a-z]+)*$`)
})

// mounted is where a pool is mounted, of whose UUID eight digits are enough to watch.
var mounted = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(/pool/(?:int|ext)/[0-9a-f]{8})(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
})
