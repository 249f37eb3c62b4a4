package shell

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
)

// Zlogin runs a command in a running zone (usr/src/cmd/zlogin/zlogin.c). The
// words after the zone's name are joined with blanks and given to a shell in
// the zone. Its exit code is the command's, but 0 when the shell was killed,
// which is what halting the zone does.
func Zlogin(tx *world.Tx, c cli.Call) cli.Reply {
	options, operands := cli.Getopt(c.Args, "dnQCESe:l:", nil)
	login := zlogin{user: "root"}
	for _, o := range options {
		switch {
		case o.Bad != "":
			return zloginUsage()
		case o.Letter == 'n':
			login.noInput = true
		case o.Letter == 'S':
			login.safe = true
		case o.Letter == 'l':
			login.user = o.Value
		default:
			cli.Simulated(false)
		}
	}
	if len(operands) == 0 {
		return zloginUsage()
	}
	cli.Simulated(len(operands) > 1 && !(login.safe && login.user != "root"))
	login.zone, login.words = operands[0], operands[1:]
	if text := login.refusal(tx, c); text != "" {
		return cli.Reply{Stderr: "zlogin: " + text + "\n", Exit: 1}
	}
	login.kernel = tx.FindZone(login.zone).Kernel.ID
	return cli.Reply{Next: &cli.Next{Session: func(ctx context.Context, m cli.Machine) (cli.Reply, error) { return login.run(ctx, m, c) }}}
}

// zlogin is a command line of zlogin.
type zlogin struct {
	zone, user    string
	words         []string
	noInput, safe bool
	kernel        int
}

// Guess brackets-of-zlogin: the brackets in zlogin's usage, whose options are those of getopt's
// string in zlogin.c; that it reads a script from standard input where there is neither a command
// nor a terminal.
// Check: `zlogin`; `echo date | zlogin ZONE`
func zloginUsage() cli.Reply {
	return cli.Reply{Stderr: "usage: zlogin [ -dnQCES ] [ -e cmdchar ] [-l user] zonename [command [args ...] ]\n", Exit: 2}
}

// refusal is why one cannot log in, in the order of main in zlogin.c.
func (l *zlogin) refusal(tx *world.Tx, c cli.Call) string {
	if c.Zone != world.GlobalZone {
		return "'zlogin' may only be used from the global zone"
	}
	if l.zone == world.GlobalZone {
		return "'zlogin' not applicable to the global zone"
	}
	z := tx.FindZone(l.zone)
	if z == nil {
		return fmt.Sprintf("zone '%s' unknown", l.zone)
	}
	switch state := z.Current(); {
	case state == "configured" || state == "incomplete":
		return fmt.Sprintf("cannot login to a zone which is '%s'", state)
	case state != world.ZoneRunning && state != world.ZoneMounted:
		return fmt.Sprintf("login allowed only to running zones (%s is '%s').", l.zone, state)
	}
	return ""
}

// run is the shell in the zone: su root -c, or sh -c with -S.
func (l *zlogin) run(ctx context.Context, m cli.Machine, c cli.Call) (cli.Reply, error) {
	if l.user != "root" {
		return cli.Reply{Stderr: fmt.Sprintf("su: Unknown id: %s\n", l.user), Exit: 1}, nil
	}
	sh := &shell{machine: m, zone: l.zone, kernel: l.kernel, env: map[string]string{"TERM": c.Env["TERM"]}}
	if !l.noInput {
		sh.stdin = c.Stdin
	}
	reply, err := sh.run(ctx, strings.Join(l.words, " "), nil)
	if errors.Is(err, cli.ErrKilled) {
		reply.Exit, err = 0, nil
	}
	return reply, err
}
