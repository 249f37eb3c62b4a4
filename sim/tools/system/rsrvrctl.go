package system

import (
	"fmt"
	"strconv"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
)

// Rsrvrctl is rsrvrctl, which sizes the VMM reservoir in MiB
// (usr/src/cmd/rsrvrctl/rsrvrctl.c). Of its options only -q and those that
// resize do something: chunks make no difference here.
func Rsrvrctl(tx *world.Tx, c cli.Call) cli.Reply {
	options, operands := cli.Getopt(c.Args, "a:r:s:c:qh", nil)
	given := map[byte]string{}
	resizes := 0
	for _, o := range options {
		switch _, twice := given[o.Letter]; {
		case o.Letter == '?' || o.Letter == ':':
			return rsrvrctlUsage(cli.Complaint("rsrvrctl", o), 1)
		case o.Letter == 'h':
			return rsrvrctlUsage("", 0)
		case o.Letter != 'q' && o.Letter != 'c' && !twice:
			resizes++
		}
		if _, twice := given[o.Letter]; !twice {
			given[o.Letter] = o.Value
		}
	}
	_, query := given['q']
	if len(operands) > 0 || resizes == 0 && !query || resizes > 1 {
		return rsrvrctlUsage("", 1)
	}
	r := tx.QueryReservoir()
	now := r.Free + r.Allocated
	resize := func(option byte, target func(bytes uint64) uint64, failed string) (cli.Reply, bool) {
		value, ok := given[option]
		if !ok {
			return cli.Reply{}, false
		}
		bytes := strtoul(value) << 20
		if err := tx.SetReservoir(target(bytes)); err != nil {
			return cli.Reply{Stderr: fmt.Sprintf("rsrvrctl: "+failed+": No space left on device\n", bytes), Exit: 1}, true
		}
		return cli.Reply{}, true
	}
	if reply, ok := resize('a', func(n uint64) uint64 { return now + n }, "Could not add %d bytes to reservoir"); ok {
		return reply
	}
	if reply, ok := resize('r', func(n uint64) uint64 { return now - min(n, now) }, "Could not remove %d bytes from reservoir"); ok {
		return reply
	}
	if reply, ok := resize('s', func(n uint64) uint64 { return n }, "Could not set reservoir size to %d bytes"); ok {
		return reply
	}
	return cli.Reply{Stdout: fmt.Sprintf("Free MiB:\t%d\nAllocated MiB:\t%d\nTransient Allocated MiB:\t%d\nSize limit MiB:\t%d\n",
		r.Free>>20, r.Allocated>>20, r.Transient>>20, r.Limit>>20)}
}

// strtoul reads a number as strtoul(3C) does with base 0; what follows the
// digits, or a word without any, is no error there.
func strtoul(word string) uint64 {
	for end := len(word); end > 0; end-- {
		if n, err := strconv.ParseUint(word[:end], 0, 64); err == nil {
			return n
		}
	}
	return 0
}

func rsrvrctlUsage(before string, exit int) cli.Reply {
	return cli.Reply{Exit: exit, Stderr: before + "Usage: rsrvrctl [-a add] [-r remove] [-q]\n" +
		"\t-a <SZ> add SZ MiB to the reservoir\n" +
		"\t-r <SZ> remove SZ MiB from the reservoir\n" +
		"\t-s <SZ> set reservoir to SZ MiB, if possible\n" +
		"\t-c <SZ> use SZ MiB chunks when performing resize ops\n" +
		"\t-q query reservoir state\n"}
}
