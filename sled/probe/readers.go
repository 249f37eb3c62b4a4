package probe

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/illumos/disk"
	"github.com/sledctl/sledctl/illumos/ipadm"
	"github.com/sledctl/sledctl/illumos/kstat"
	"github.com/sledctl/sledctl/illumos/ofmt"
	"github.com/sledctl/sledctl/illumos/processor"
	"github.com/sledctl/sledctl/illumos/reservoir"
	"github.com/sledctl/sledctl/illumos/smf"
	"github.com/sledctl/sledctl/illumos/system"
	"github.com/sledctl/sledctl/vnic"
	"github.com/sledctl/sledctl/zfs"
	"github.com/sledctl/sledctl/zone"
)

// reader is how sledctl reads a command's output: it asks a host, and may ask for more.
type reader func(context.Context, host.Host) (any, error)

// plain is a reader of a driver that needs nothing else.
func plain[T any](read func(context.Context, host.Host) (T, error)) reader {
	return func(ctx context.Context, h host.Host) (any, error) { return read(ctx, h) }
}

// subject is a command with its reader, and the guesses about it.
type subject struct {
	words   string // with which it begins
	read    reader // nil: nothing does
	guesses string
}

// subjects are the commands of a recording. A test compares the guesses with
// docs/unverified.md.
func subjects() []subject {
	links := func(ctx context.Context, h host.Host) (any, error) {
		all, zoned, err := vnic.List(ctx, h)
		return []any{all, zoned}, err
	}
	addresses := func(ctx context.Context, h host.Host) (any, error) {
		all, _, err := vnic.List(ctx, h)
		if err != nil {
			return nil, err
		}
		return vnic.Addresses(ctx, h, all)
	}
	return []subject{
		{"uname -v", plain(system.QueryKernel), "multi-queue-since-r151058"},
		{"kstat -p unix:0:system_misc:boot_time", plain(kstat.Booted), ""},
		{"kstat -p zones:::nsec_sys", plain(kstat.Query), "links-count-viona zone-time-includes-guests"},
		{"kstat -p cpu_info:0:cpu_info0:vendor_id", plain(kstat.QueryProcessor), "families-by-model"},
		{"zonename", plain(system.QueryZone), ""},
		{"prtconf -m", plain(reservoir.Memory), "all-memory-available-at-boot"},
		{"prtconf -vD", func(ctx context.Context, h host.Host) (any, error) { return disk.Look(ctx, h, disk.Detect{}) },
			"prtconf-indents-by-four nodes-and-properties-of-prtconf boot-storage-unit-at-root size-in-two-properties unlabelled-disk-has-efi-minors"},
		{"psrinfo", plain(processor.Online), ""},
		{"swap -s", plain(system.QuerySwap), "reservoir-counts-as-used zone-needs-256-mib"},
		{"rsrvrctl -q", plain(reservoir.Query), "reservoir-limit-by-locking all-memory-available-at-boot"},
		{"pcred", nil, ""},
		{"ppriv", nil, "root-has-all-privileges"},
		{"ls", nil, "attributes-on-own-line"},
		{"mount -p", plain(system.QueryMounts), "cloned-root-stays-mounted"},
		{"zoneadm list", nil, "zone-listing-complete choice-of-debug-ids zone-ids-from-one"},
		{"dladm show-link -p -o link,class", nil, "listings-open-no-link"},
		{"dladm show-vnic -p -o over,macaddress", nil, "listings-open-no-link"},
		{"dladm show-link", links, "listings-open-no-link links-of-one-name-in-order"},
		{"dladm show-vnic", links, "listings-open-no-link zone-has-configured-vnics"},
		{"dladm show-phys", addresses, "lines-of-links-and-aggregations"},
		{"dladm show-aggr", addresses, "lines-of-links-and-aggregations"},
		{"ipadm show-addr", nil, "dhcp-without-waiting smartos-address-from-usbkey"},
		{"netstat -rn", nil, "blanks-of-netstat"},
		{"route -n get", plain(ipadm.DefaultLink), ""},
		{"zpool list -HpvP", plain(zfs.Pools), "columns-of-devices device-sizes-are-the-pools no-sizes-of-unavail-pool ramdisk-in-device-name"},
		{"zpool list -H -o name,guid", nil, ""},
		{"zpool list -H", plain(zfs.Pools), "no-sizes-of-unavail-pool faulted-pool-can-be-exported"},
		{"zpool status", nil, "pool-notices-at-once"},
		{"zpool import", func(ctx context.Context, h host.Host) (any, error) { return zfs.FindImportable(ctx, h, "") }, "import-finds-none-silently host-id-after-each-boot"},
		{"zonecfg", nil, "choice-of-debug-ids smartos-zonecfg-is-omnios zonecfg-takes-quoted-batch"},
		{"svcs -a", func(ctx context.Context, h host.Host) (any, error) { return smf.States(ctx, h, "") }, "svcs-header-is-padded"},
		{"svcs -z", nil, "questions-from-outside"},
		{"svcs -H", nil, "vmadmd-and-pool-zones"},
		{"svcprop", nil, "questions-from-outside"},
		{"zfs get", nil, "get-lists-snapshots encryption-on-is-ccm quota-none-is-local snapshots-refer-to-now"},
	}
}

func subjectOf(argv []string) (subject, bool) {
	line := joined(argv) + " "
	for _, s := range subjects() {
		if strings.HasPrefix(line, s.words+" ") {
			return s, true
		}
	}
	return subject{}, false
}

func guessesOf(argv []string) []string {
	s, _ := subjectOf(argv)
	return append([]string{}, strings.Fields(s.guesses)...)
}

// readerOf is the reader of a command; nil: sledctl does not read it.
func readerOf(argv []string) reader {
	s, _ := subjectOf(argv)
	if read := parsers()[s.words]; read != nil {
		return func(ctx context.Context, h host.Host) (any, error) {
			r, err := h.Run(ctx, command(argv))
			if err != nil {
				return nil, err
			}
			return read(argv, r.Stdout)
		}
	}
	return s.read
}

// parsers read the output alone, of a command with whatever arguments.
func parsers() map[string]func(argv []string, out []byte) (any, error) {
	return map[string]func([]string, []byte) (any, error){
		"zoneadm list":                          func(_ []string, out []byte) (any, error) { return zone.ParseList(out) },
		"pcred":                                 func(_ []string, out []byte) (any, error) { return system.ParseUser(string(out)) },
		"ppriv":                                 func(_ []string, out []byte) (any, error) { return system.ParsePrivileges(string(out)) },
		"ls":                                    func(argv []string, out []byte) (any, error) { return zfs.ParseAttributes(out, argv[2:]) },
		"dladm show-link -p -o link,class":      func(_ []string, out []byte) (any, error) { return ofmt.Rows(out, 2) },
		"dladm show-vnic -p -o over,macaddress": func(_ []string, out []byte) (any, error) { return ofmt.Rows(out, 2) },
		"ipadm show-addr":                       func(_ []string, out []byte) (any, error) { return ipadm.ParseAddresses(out) },
		"zpool list -H -o name,guid":            func(_ []string, out []byte) (any, error) { return strings.Fields(string(out)), nil },
		"svcs -H":                               func(_ []string, out []byte) (any, error) { return smf.ParseList(out) },
		"svcs -z":                               func(_ []string, out []byte) (any, error) { return smf.ParseList(out) },
		"svcprop":                               func(_ []string, out []byte) (any, error) { return smf.ParseState(out) },
		"netstat -rn":                           routes,
		"zfs get":                               datasets,
	}
}

// routes are a set.
func routes(_ []string, out []byte) (any, error) {
	all, err := ipadm.ParseRoutes(out)
	slices.SortFunc(all, func(a, b ipadm.Route) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return all, err
}

// datasets have the properties that stand behind the columns. Those of their own have not all.
func datasets(argv []string, out []byte) (any, error) {
	if slices.Contains(argv, "-s") {
		var all [][]string
		for line := range strings.Lines(string(out)) {
			all = append(all, strings.Split(strings.TrimSuffix(line, "\n"), "\t"))
		}
		return all, nil
	}
	i := slices.Index(argv, "name,property,value,source")
	if i < 0 || i+1 >= len(argv) {
		return nil, zfs.ErrSyntax
	}
	return zfs.ParseDatasets(out, strings.Split(argv[i+1], ","))
}
