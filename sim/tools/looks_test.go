package tools

import (
	"strings"
	"testing"

	"github.com/sledctl/sledctl/sim/tools/cli"
)

func TestWhichCommandsOnlyLook(t *testing.T) {
	for line, want := range map[string]bool{
		"zoneadm list -cp": true, "zoneadm -z web1 list -p": true, "zoneadm": false, "zoneadm -z list": false,
		"zoneadm -z list boot": false, "zoneadm -z list list": true, "zoneadm -z web1 clone list": false,
		"zonecfg -z web1 export": true, "zonecfg -z export delete -F": false, "zonecfg -z web1 delete": false,
		"zfs list -H": true, "zfs create list": false, "zfs": false, "zpool status": true, "zpool clear list": false,
		"dladm show-link": true, "dladm create-vnic show-link": false, "svcprop -w x": true, "svcadm enable svcs": false,
	} {
		words := strings.Fields(line)
		if got := looks(cli.Call{Tool: words[0], Args: words[1:]}); got != want {
			t.Errorf("%s: %v", line, got)
		}
	}
}
