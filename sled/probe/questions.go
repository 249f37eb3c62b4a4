package probe

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/illumos/kstat"
	"github.com/sledctl/sledctl/illumos/ofmt"
	"github.com/sledctl/sledctl/zone"
)

// Question is one command of a recording.
type Question struct {
	Command host.Command
	// Each says that it is asked once for each object: ZONE, POOL, LINK, VNIC or ADDRESS in it
	// stands for the name.
	Each string
}

// The objects for which a question is asked once each.
const (
	eachZone    = "ZONE"
	eachRunning = "RUNNING ZONE"
	eachPool    = "POOL"
	eachLink    = "LINK"
	eachVNIC    = "VNIC"
	eachAddress = "ADDRESS"
)

// What the questions about the objects list.
const (
	linkList    = "dladm show-link -p -o link,class,mtu,state"
	vnicList    = "dladm show-vnic -p -o link,over,macaddress,vid"
	addressList = "ipadm show-addr -p -o addrobj,type,state,addr"
	poolList    = "zpool list -H -o name,guid,health,failmode"
	zoneList    = "zoneadm list -cp"
)

// properties are those of a dataset that the drivers read. No user property is among
// them, and none that says where a key is.
const properties = "type,guid,mountpoint,mounted,origin,used,available,quota,reservation,compression,canmount," +
	"refquota,volsize,zoned,encryption,keyformat,keystatus,encryptionroot"

// few are those that a dataset may have of its own.
const few = "mountpoint,quota,reservation,compression,canmount"

// Questions are all that a recording asks: what the drivers send when they look at a
// sled, and what zonecfg(8) prints about each zone. `dladm show-linkprop` is not among them: it
// opens each link, and a zone that boots meanwhile does not get its VNIC. Neither are
// fstyp(8), which opens disks, and what makes a zone's brand run. A test compares them with the
// code of the drivers.
func Questions() []Question {
	lines := [][2]string{
		{"", "uname -v"},
		{"", "kstat -p unix:0:system_misc:boot_time"},
		{"", "kstat -p zones:::nsec_sys zones:::nsec_user zones:::zonename link:0::obytes64 link:0::rbytes64"},
		{"", "kstat -p cpu_info:0:cpu_info0:vendor_id cpu_info:0:cpu_info0:family cpu_info:0:cpu_info0:model"},
		{"", "zonename"},
		{"", "pcred 1"},
		{"", "ppriv 1"},
		{"", "prtconf -m"},
		{"", "prtconf -vD"},
		{"", "psrinfo"},
		{"", "swap -s"},
		{"", "rsrvrctl -q"},
		{"", "mount -p"},
		{"", "ls -d/v /etc /var/run"},
		{"", zoneList},
		{"", linkList},
		{"", vnicList},
		{"", vnicList + ",zone"},
		{"", "dladm show-phys -m -p -o link,address"},
		{"", "dladm show-aggr -x -p -o link,port,address"},
		{"", addressList},
		{"", "netstat -rn"},
		{"", "route -n get -inet default"},
		{"", "route -n get -inet6 default"},
		{"", "zpool list -HpvP -o name,size,allocated,free,health,guid,failmode"},
		{"", poolList},
		{"", "zpool status"},
		{"", "zpool import"},
		{"", "svcs -a -H -o state,fmri"},
		{"", "svcs -H -o state,fmri svc:/oxide/sled-agent svc:/system/smartdc/vmadmd"},
		{"", "svcprop -p restarter/state svc:/system/filesystem/local:default"},
		{"", get + "-d 0 " + fields + few},
		{eachLink, "dladm show-link -p -o link,class LINK"},
		{eachVNIC, "dladm show-vnic -p -o over,macaddress VNIC"},
		{eachAddress, addressList + " ADDRESS"},
		{eachZone, "zonecfg -z ZONE export"},
		{eachZone, "zonecfg -z ZONE info"},
		{eachRunning, "svcs -z ZONE -a -H -o state,fmri"},
		{eachRunning, "svcprop -z ZONE -p restarter/state svc:/milestone/multi-user-server:default"},
		{eachPool, "zpool list -H -o name,guid POOL"},
		{eachPool, get + "-r " + fields + properties + " POOL"},
		{eachPool, get + fields + properties + " POOL"},
		{eachPool, get + "-d 1 " + fields + few + " POOL"},
		{eachPool, get + "-r -s local " + fields + few + " POOL"},
	}
	all := make([]Question, len(lines))
	for i, q := range lines {
		all[i] = Question{Each: q[0], Command: command(strings.Fields(q[1]))}
	}
	return all
}

// How datasets are asked for, before and behind which of them.
const (
	get    = "zfs get -Hp "
	fields = "-o name,property,value,source "
)

func command(argv []string) host.Command {
	return host.Command{Program: argv[0], Args: argv[1:], ReadOnly: true}
}

// of is the question about one object.
func (q Question) of(name string) host.Command {
	c := q.Command
	c.Args = slices.Clone(c.Args)
	for i, arg := range c.Args {
		if slices.Contains([]string{eachZone, eachPool, eachLink, eachVNIC, eachAddress}, arg) {
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
		for line := range strings.Lines(string(outputOf(sofar, poolList))) {
			fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
			if len(fields) > 2 && fields[2] != "FAULTED" && fields[2] != "UNAVAIL" {
				names = append(names, fields[0])
			}
		}
		return names
	case eachLink:
		return firstCells(outputOf(sofar, linkList), 4)
	case eachVNIC:
		return firstCells(outputOf(sofar, vnicList), 4)
	case eachAddress:
		return firstCells(outputOf(sofar, addressList), 4)
	}
	zones, _ := zone.ParseList(outputOf(sofar, zoneList))
	for _, z := range zones {
		if z.Name != "global" && (each == eachZone || z.State == zone.Running) {
			names = append(names, z.Name)
		}
	}
	return names
}

// firstCells is the first column of what dladm or ipadm prints for programs, each name once.
func firstCells(out []byte, columns int) (names []string) {
	for line := range strings.Lines(string(out)) {
		row, err := ofmt.Row(strings.TrimSuffix(line, "\n"), columns)
		if err == nil && row[0] != "" && !slices.Contains(names, row[0]) {
			names = append(names, row[0])
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
// that the program does not read; of a directory, who owns it, its size and its time; of
// counters, how far they have come.
func reduced(c host.Command, out []byte) []byte {
	switch {
	case c.Program == "prtconf" && slices.Contains(c.Args, "-vD"):
		return keptOfTree(out)
	case c.Program == "ls":
		return keptOfDirectories(out)
	case c.Program == "kstat":
		return keptOfCounters(out)
	}
	return bytes.Clone(out)
}

// keptOfCounters are their names, each with 0: they are others at each look, but for what a
// processor is. A zone has its complete name: what kstat cuts off of one is a name of its own.
func keptOfCounters(out []byte) (kept []byte) {
	zones := map[string]string{}
	for line := range strings.Lines(string(out)) {
		if c, ok := kstat.ParseCounter(line); ok && c.Statistic == "zonename" {
			zones[c.Instance] = c.Value
		}
	}
	for line := range strings.Lines(string(out)) {
		c, ok := kstat.ParseCounter(line)
		if !ok {
			kept = append(kept, line...)
			continue
		}
		if c.Module == "zones" {
			c.Name = cmp.Or(zones[c.Instance], "-") // it began meanwhile
		}
		if c.Statistic != "zonename" && c.Module != "cpu_info" {
			c.Value = "0"
		}
		kept = fmt.Appendln(kept, c)
	}
	return kept
}

// keptOfDirectories are the modes, names and attributes.
func keptOfDirectories(out []byte) (kept []byte) {
	for line := range bytes.Lines(out) {
		if f := bytes.Fields(line); len(f) > 1 && !bytes.HasPrefix(f[0], []byte("{")) {
			line = fmt.Appendf(nil, "%s %s\n", f[0], f[len(f)-1])
		}
		kept = append(kept, line...)
	}
	return kept
}

func keptOfTree(out []byte) []byte {
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
