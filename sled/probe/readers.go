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
		{"zonename", plain(system.QueryZone), ""},
		{"prtconf -m", plain(reservoir.Memory), "all-memory-available-at-boot"},
		{"prtconf -vD", func(ctx context.Context, h host.Host) (any, error) { return disk.Look(ctx, h, disk.Detect{}) },
			"prtconf-indents-by-four nodes-and-properties-of-prtconf boot-storage-unit-at-root size-in-two-properties unlabelled-disk-has-efi-minors"},
		{"psrinfo", plain(processor.Online), ""},
		{"swap -s", plain(system.QuerySwap), "reservoir-counts-as-used zone-needs-256-mib"},
		{"rsrvrctl -q", plain(reservoir.Query), "reservoir-limit-by-locking all-memory-available-at-boot"},
		{"mount -p", plain(system.QueryMounts), "cloned-root-stays-mounted"},
		{"zoneadm list", nil, "zone-listing-complete choice-of-debug-ids zone-ids-from-one"},
		{"dladm show-link", links, "listings-open-no-link links-of-one-name-in-order"},
		{"dladm show-vnic", links, "listings-open-no-link zone-has-configured-vnics"},
		{"dladm show-phys", addresses, "lines-of-links-and-aggregations"},
		{"dladm show-aggr", addresses, "lines-of-links-and-aggregations"},
		{"ipadm show-addr", func(ctx context.Context, h host.Host) (any, error) { return ipadm.Addresses(ctx, h, "") }, "dhcp-without-waiting smartos-address-from-usbkey"},
		{"netstat -rn", nil, "blanks-of-netstat"},
		{"route -n get", plain(ipadm.DefaultLink), ""},
		{"zpool list -HpvP", plain(zfs.Pools), "columns-of-devices device-sizes-are-the-pools no-sizes-of-unavail-pool ramdisk-in-device-name"},
		{"zpool list -H", plain(zfs.Pools), "no-sizes-of-unavail-pool faulted-pool-can-be-exported"},
		{"zpool status", nil, "pool-notices-at-once"},
		{"zpool import", func(ctx context.Context, h host.Host) (any, error) { return zfs.FindImportable(ctx, h, "") }, "import-finds-none-silently host-id-after-each-boot"},
		{"zonecfg", nil, "choice-of-debug-ids smartos-zonecfg-is-omnios zonecfg-takes-quoted-batch"},
		{"svcs -a", func(ctx context.Context, h host.Host) (any, error) { return smf.States(ctx, h, "") }, "svcs-header-is-padded"},
		{"svcs -z", nil, "questions-from-outside"},
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
	switch {
	case s.words == "zoneadm list": // with whatever options
		return func(ctx context.Context, h host.Host) (any, error) {
			r, err := h.Run(ctx, command(argv))
			if err != nil {
				return nil, err
			}
			return zone.ParseList(r.Stdout)
		}
	case s.words == "netstat -rn":
		return func(ctx context.Context, h host.Host) (any, error) {
			r, err := h.Run(ctx, command(argv))
			if err != nil {
				return nil, err
			}
			all, err := ipadm.ParseRoutes(r.Stdout)
			slices.SortFunc(all, func(a, b ipadm.Route) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) }) // a set
			return all, err
		}
	case s.words == "svcs -z" && len(argv) > 2:
		return func(ctx context.Context, h host.Host) (any, error) { return smf.States(ctx, h, argv[2]) }
	case s.words == "zfs get":
		return func(ctx context.Context, h host.Host) (any, error) {
			return zfs.List(ctx, h, argv[len(argv)-1:], zfs.Extended())
		}
	}
	return s.read
}
