package opte

import (
	"strconv"
	"strings"

	"github.com/sledctl/sledctl/host"
)

func query(args ...string) host.Command {
	return host.Command{Program: "opteadm", Args: args, ReadOnly: true}
}

func opteadm(args ...string) host.Command { return host.Command{Program: "opteadm", Args: args} }

func versionCommand() host.Command { return query("--version") }

func listCommand() host.Command { return query("list-ports") }

func layerCommand(port, layer string) host.Command { return query("dump-layer", "-p", port, layer) }

func setUnderlayCommand(s SetUnderlay) host.Command {
	return opteadm("set-xde-underlay", s.First, s.Second)
}

func setBoundaryCommand(s SetBoundary) host.Command {
	return opteadm(append([]string{"set-v2b", s.Prefix}, s.Switches...)...)
}

func createCommand(p Create) host.Command {
	args := []string{
		"create-xde", p.Name, "--guest-mac", p.MAC, "--private-ip", p.IP.String(), "--vpc-subnet", p.Subnet.String(),
		"--gateway-mac", GatewayMAC, "--gateway-ip", p.Gateway.String(), "--vpc-vni", strconv.Itoa(p.VNI), "--src-underlay-addr", p.Physical.String(),
	}
	if ip, ports, has := strings.Cut(p.SNAT, "/"); has {
		first, last, _ := strings.Cut(ports, "-")
		args = append(args, "--snat-ip", ip, "--snat-start", first, "--snat-end", last)
	}
	if p.Ephemeral != "" {
		args = append(args, "--ephemeral-ip", p.Ephemeral)
	}
	for _, ip := range p.Floating {
		args = append(args, "--floating-ip", ip)
	}
	return opteadm(args...)
}

func deleteCommand(name string) host.Command { return opteadm("delete-xde", name) }

// setRulesCommand: without a rule there is no line at all, as an empty one is no rule.
func setRulesCommand(s SetRules) host.Command {
	c := opteadm("set-fw-rules", "-p", s.Port)
	var lines strings.Builder
	for _, r := range s.Rules {
		lines.WriteString(r.line() + "\n")
	}
	c.Stdin = []byte(lines.String())
	return c
}

func addRouteCommand(s AddRoute) host.Command {
	return opteadm("add-router-entry", "-p", s.Port, s.Route.Dest.String(), s.Route.Target, s.Route.class())
}

func removeRouteCommand(s RemoveRoute) host.Command {
	return opteadm("del-router-entry", "-p", s.Port, s.Route.Dest.String(), s.Route.Target, s.Route.class())
}
