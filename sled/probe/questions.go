package probe

import (
	"bytes"
	"context"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/zone"
)

// Question is one command of a recording.
type Question struct {
	Command host.Command
	// Each says that it is asked once for each object: ZONE or POOL in it stands for the name.
	Each string
}

// The objects for which a question is asked once each.
const (
	eachZone    = "ZONE"
	eachRunning = "RUNNING ZONE"
	eachPool    = "POOL"
)

// properties are those of a dataset that the drivers read. No user property is among
// them, and none that says where a key is.
const properties = "type,guid,mountpoint,mounted,origin,used,available,quota,reservation,compression,canmount," +
	"refquota,volsize,zoned,encryption,keyformat,keystatus,encryptionroot"

// Questions are all that a recording asks: what the drivers send when they look at a
// sled, and what zonecfg(8) prints about each zone. `dladm show-linkprop` is not among them: it
// opens each link, and a zone that boots meanwhile does not get its VNIC. Neither are
// fstyp(8), which opens disks, and what makes a zone's brand run.
func Questions() []Question {
	lines := []string{
		"uname -v",
		"zonename",
		"prtconf -m",
		"prtconf -vD",
		"psrinfo",
		"swap -s",
		"rsrvrctl -q",
		"mount -p",
		"zoneadm list -cp",
		"dladm show-link -p -o link,class,mtu,state",
		"dladm show-vnic -p -o link,over,macaddress,vid",
		"dladm show-vnic -p -o link,over,macaddress,vid,zone",
		"dladm show-phys -m -p -o link,address",
		"dladm show-aggr -x -p -o link,port,address",
		"ipadm show-addr -p -o addrobj,type,state,addr",
		"netstat -rn",
		"route -n get -inet default",
		"route -n get -inet6 default",
		"zpool list -HpvP -o name,size,allocated,free,health,guid,failmode",
		"zpool list -H -o name,guid,health,failmode",
		"zpool status",
		"zpool import",
		"svcs -a -H -o state,fmri",
	}
	all := make([]Question, 0, len(lines)+4)
	for _, line := range lines {
		all = append(all, Question{Command: command(strings.Fields(line))})
	}
	for _, q := range [][2]string{
		{eachZone, "zonecfg -z ZONE export"},
		{eachZone, "zonecfg -z ZONE info"},
		{eachRunning, "svcs -z ZONE -a -H -o state,fmri"},
		{eachPool, "zfs get -Hp -r -o name,property,value,source " + properties + " POOL"},
	} {
		all = append(all, Question{Each: q[0], Command: command(strings.Fields(q[1]))})
	}
	return all
}

func command(argv []string) host.Command {
	return host.Command{Program: argv[0], Args: argv[1:], ReadOnly: true}
}

// of is the question about one object.
func (q Question) of(name string) host.Command {
	c := q.Command
	c.Args = slices.Clone(c.Args)
	for i, arg := range c.Args {
		if arg == eachZone || arg == eachPool {
			c.Args[i] = name
		}
	}
	return c
}

// objects are the names for which a question is asked, as the answers so far tell them.
func objects(each string, sofar []Answer) (names []string) {
	switch each {
	case "":
		return []string{""}
	case eachPool:
		for line := range strings.Lines(string(outputOf(sofar, "zpool list -H -o name,guid,health,failmode"))) {
			fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
			if len(fields) > 2 && fields[2] != "FAULTED" && fields[2] != "UNAVAIL" {
				names = append(names, fields[0])
			}
		}
		return names
	}
	zones, _ := zone.ParseList(outputOf(sofar, "zoneadm list -cp"))
	for _, z := range zones {
		if z.Name != "global" && (each == eachZone || z.State == zone.Running) {
			names = append(names, z.Name)
		}
	}
	return names
}

// outputOf is what a command printed; nil: it was not asked, or failed.
func outputOf(all []Answer, line string) []byte {
	for _, a := range all {
		if a.Exit == 0 && strings.Join(a.Argv, " ") == line {
			return a.Stdout
		}
	}
	return nil
}

// ask runs one command, at most for the limit of a question.
func ask(ctx context.Context, h host.Host, c host.Command) (host.Result, error) {
	ctx, release := context.WithTimeout(ctx, limit)
	defer release()
	r, err := h.Run(ctx, c)
	r.Stdout, r.Stderr = reduced(c, r.Stdout), bytes.Clone(r.Stderr)
	return r, err
}

// reduced is an output without what no recording holds: of the device tree, properties
// that the program does not read.
func reduced(c host.Command, out []byte) []byte {
	if c.Program != "prtconf" || !slices.Contains(c.Args, "-vD") {
		return bytes.Clone(out)
	}
	var kept []byte
	drop := false
	for line := range bytes.Lines(out) {
		text := string(bytes.TrimSpace(line))
		switch name, found := strings.CutPrefix(text, "name='"); {
		case found:
			name, _, _ = strings.Cut(name, "'")
			drop = !slices.Contains(keptProperties(), name)
		case !strings.HasPrefix(text, "value="):
			drop = false
		}
		if !drop {
			kept = append(kept, line...)
		}
	}
	return kept
}

// keptProperties are those of a device that a recording holds.
func keptProperties() []string {
	return []string{
		"device-nblocks", "device-blksize", "device-solid-state", "device_type", "physical-slot#", "vendor-id", "device-id",
		"inquiry-serial-no", "inquiry-vendor-id", "inquiry-product-id", "inquiry-revision-id", "devid", "class", "class-code", "model",
		"baseboard-identifier", "baseboard-model", "baseboard-revision", "boot-storage-unit",
	}
}
