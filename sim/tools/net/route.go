package net

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"syscall"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/network"
)

// route(8): the routing table of the zone that it runs in, and
// /etc/inet/static_routes with -p. Texts and exit codes are those of
// usr/src/cmd/cmd-inet/usr.sbin/route.c: what the kernel answers is printed on
// standard output and its errno is the exit code; faults of the command line
// and of the file go to standard error, with 1.

// routeCall is one run of route.
type routeCall struct {
	tx         *world.Tx
	zone       string
	numeric    bool // -n
	persistent bool // -p

	verb        string // add, delete, get
	six         bool
	host, net   bool
	destination string
	gateway     string
	mask        string
	request     network.RouteRequest
}

// Route runs route(8).
func Route(tx *world.Tx, c cli.Call) cli.Reply {
	r := &routeCall{tx: tx, zone: c.Zone}
	options, operands := cli.Getopt(c.Args, "R:nqdtvfp", nil)
	for _, opt := range options {
		switch opt.Letter {
		case 'n':
			r.numeric = true
		case 'p':
			r.persistent = true
		case ':', '?':
			return routeUsage("")
		default:
			return r.fault("-%c: the simulated sled has no such option", opt.Letter)
		}
	}
	switch {
	case len(operands) == 0:
		return routeUsage("")
	case operands[0] == "change" || operands[0] == "monitor" || operands[0] == "flush" || operands[0] == "show":
		return r.fault("%s: the simulated sled has no such command", operands[0])
	case operands[0] != "add" && operands[0] != "delete" && operands[0] != "get":
		return routeUsage(operands[0])
	}
	r.verb = operands[0]
	if end := r.read(operands[1:]); end != nil {
		return *end
	}
	return r.run()
}

func routeUsage(botched string) cli.Reply {
	usage := "usage: route [ -fnpqv ] [ -R <root-dir> ] cmd [[ -<qualifers> ] args ]\n"
	if botched != "" {
		usage = "route: botched keyword: " + botched + "\n" + usage
	}
	return cli.Reply{Stderr: usage, Exit: 1}
}

// fault is syntax_error.
func (r *routeCall) fault(format string, args ...any) cli.Reply {
	return cli.Reply{Stderr: "route: " + fmt.Sprintf(format, args...) + "\n", Exit: 1}
}

// read is args_to_rtcmd: keywords behind a "-", then destination, gateway and
// an old-style netmask.
func (r *routeCall) read(words []string) *cli.Reply {
	for i := 0; i < len(words); i++ {
		word := words[i]
		key, dash := strings.CutPrefix(word, "-")
		if !dash && word != "host" && word != "net" {
			if end := r.operand(word); end != nil {
				return end
			}
			continue
		}
		if key == "ifp" || key == "gateway" || key == "dst" || key == "netmask" {
			if i++; i == len(words) {
				return ended(r.fault("argument required following keyword %s", word))
			}
			r.named(key, words[i])
			continue
		}
		if end := r.keyword(key); end != nil {
			return end
		}
	}
	switch {
	case r.destination == "":
		return ended(r.fault("destination required"))
	case r.gateway == "" && r.verb != "get":
		return ended(r.fault("gateway required for add or delete command"))
	}
	return r.resolve()
}

func ended(r cli.Reply) *cli.Reply { return &r }

func (r *routeCall) keyword(key string) *cli.Reply {
	switch key {
	case "inet":
		r.six = false
	case "inet6":
		r.six = true
	case "host":
		r.host = true
	case "net":
		r.net = true
	case "interface", "iface":
		r.request.Local = true
	case "static", "nostatic":
	default:
		return ended(r.fault("botched keyword: %s", key))
	}
	if r.host && r.net {
		return ended(r.fault("-host and -net are mutually exclusive"))
	}
	return nil
}

func (r *routeCall) named(key, value string) {
	switch key {
	case "ifp":
		r.request.Interface = value
	case "gateway":
		r.gateway = value
	case "dst":
		r.destination = value
	case "netmask":
		r.mask = value
	}
}

func (r *routeCall) operand(word string) *cli.Reply {
	switch {
	case r.destination == "":
		r.destination = word
	case r.gateway == "":
		r.gateway = word
	case r.six:
		return ended(r.fault("-netmask not supported for IPv6: use <prefix>/<prefix-length> instead"))
	default:
		r.mask = word
	}
	return nil
}

// resolve turns the words into addresses. Names are not looked up: the
// simulated sled has no name service.
func (r *routeCall) resolve() *cli.Reply {
	if end := r.resolveDestination(); end != nil {
		return end
	}
	if r.gateway != "" {
		gateway, err := netip.ParseAddr(r.gateway)
		if err != nil || gateway.Is4() == r.six {
			return ended(r.fault("%s: bad value", r.gateway)) // Guess: the words for a gateway that is no address.
		}
		r.request.Gateway = gateway
	}
	if name := r.request.Interface; name != "" && network.FindInterface(r.tx, r.zone, name) == nil {
		return ended(r.fault("%s: no such interface", name))
	}
	return nil
}

func (r *routeCall) resolveDestination() *cli.Reply {
	zero, bits := netip.IPv4Unspecified(), 32
	if r.six {
		zero, bits = netip.IPv6Unspecified(), 128
	}
	if r.destination == "default" {
		r.request.Destination, r.request.Exact = netip.PrefixFrom(zero, 0), true
		return nil
	}
	address, length, has := strings.Cut(r.destination, "/")
	a, err := netip.ParseAddr(address)
	if err != nil || a.Is4() == r.six {
		return ended(r.fault("%s: bad value", address)) // Guess: as above.
	}
	if has {
		p, err := netip.ParsePrefix(a.String() + "/" + length)
		if err != nil {
			return ended(r.fault("bad prefix length: %s", length)) // Guess: the real one prints a number.
		}
		bits, r.request.Exact = p.Bits(), true
	}
	if m, err := netip.ParseAddr(r.mask); err == nil && m.Is4() {
		bits, r.request.Exact = maskBits(m), true
	}
	r.request.Destination = netip.PrefixFrom(a, bits)
	return nil
}

func maskBits(m netip.Addr) int {
	bits := 0
	for _, b := range m.AsSlice() {
		for ; b != 0; b <<= 1 {
			bits++
		}
	}
	return bits
}

// run asks the kernel, then the file.
func (r *routeCall) run() cli.Reply {
	var err error
	var view network.RouteView
	switch r.verb {
	case "add":
		err = network.AddRoute(r.tx, r.zone, r.request)
	case "delete":
		err = network.DeleteRoute(r.tx, r.zone, r.request)
	case "get":
		view, err = network.FindRoute(r.tx, r.zone, r.request)
	}
	out := cli.Reply{Exit: exitOf(err)}
	switch {
	case r.verb == "get" && err == nil:
		out.Stdout = r.describe(view)
	case r.verb == "get":
		out.Stdout = r.asked()
	default:
		out.Stdout = r.short("")
	}
	if err != nil {
		out.Stdout += ": " + routeWords(err)
	}
	if r.verb != "get" || err != nil {
		out.Stdout += "\n"
	}
	if r.persistent && (err == nil || errors.Is(err, syscall.EEXIST) || errors.Is(err, syscall.ESRCH)) {
		return r.save(out)
	}
	return out
}

// save is save_route. Its outcome replaces the kernel's exit code.
func (r *routeCall) save(out cli.Reply) cli.Reply {
	out.Exit = 0
	line := r.short(" persistent")
	switch {
	case r.verb == "add" && !network.SaveRoute(r.tx, r.zone, r.request):
		out.Stderr, out.Exit = line+": entry exists\n", 1
	case r.verb == "delete" && !network.UnsaveRoute(r.tx, r.zone, r.request):
		out.Stderr, out.Exit = line+": not in file\n", 1
	case r.verb != "get":
		out.Stdout += line + "\n"
	}
	return out
}
