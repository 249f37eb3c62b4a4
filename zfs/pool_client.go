package zfs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/host"
)

// Pools lists the imported pools with their devices, in one command. A zpool
// without exact listings (zfs-fuse) is asked in two, and tells no sizes. Errors:
// ErrSyntax; a *host.CommandError.
func Pools(ctx context.Context, h host.Host) ([]Pool, error) {
	pools, err := listPools(ctx, h)
	if err != nil {
		return nil, fmt.Errorf("list pools: %w", err)
	}
	return pools, nil
}

// plainKey is where a host remembers that its zpool has no exact listings.
type plainKey struct{}

func listPools(ctx context.Context, h host.Host) ([]Pool, error) {
	if plain, _ := host.Recall[bool](h, plainKey{}); plain {
		return listPlainly(ctx, h)
	}
	out, err := ask(ctx, h, poolsCommand())
	if isLacking(err) {
		host.Remember(h, plainKey{}, true)
		return listPlainly(ctx, h)
	}
	if err != nil {
		return nil, err
	}
	return ParsePools(out)
}

func listPlainly(ctx context.Context, h host.Host) ([]Pool, error) {
	list, err := ask(ctx, h, plainPoolsCommand())
	if err != nil || len(list) == 0 {
		return nil, err
	}
	status, err := ask(ctx, h, statusCommand())
	if err != nil {
		return nil, err
	}
	return parsePlainPools(list, status)
}

// ask gives what a query printed.
func ask(ctx context.Context, h host.Host, c host.Command) ([]byte, error) {
	r, err := h.Run(ctx, c)
	if err == nil && r.Exit != 0 {
		err = failure(c, r)
	}
	return r.Stdout, err
}

// FindImportable looks for pools that are not imported, on the devices of a
// directory or, if dir is empty, on all disks (/dev/dsk). It needs privileges.
// None found is an answer only if zpool gave it: any other word of it is an
// error. Errors: ErrSyntax; a *host.CommandError.
func FindImportable(ctx context.Context, h host.Host, dir string) ([]Importable, error) {
	c := importableCommand(dir)
	r, err := h.Run(ctx, c)
	switch {
	case err != nil:
	case foundNone(r):
		return nil, nil
	case r.Exit != 0 || len(r.Stderr) > 0:
		err = failure(c, r)
	default:
		var found []Importable
		if found, err = ParseImportable(r.Stdout); err == nil && len(found) == 0 {
			err = fmt.Errorf("zpool import says nothing at all: %w", ErrSyntax)
		}
		if err == nil {
			return found, nil
		}
	}
	return nil, fmt.Errorf("look for pools: %w", err)
}

// foundNone reports whether zpool import found no pool. If there is no pool at all on
// the devices, it ends with 1 and prints nothing; if there are only destroyed ones,
// with 0 and a line (zpool_do_import of zpool_main.c). If it cannot look, it always
// prints something.
//
// Guess import-finds-none-silently: `zpool import` that finds no pool ends with 1 and prints
// nothing, and prints a message if it cannot look (zpool_do_import).
// Check: `zpool import -d` of an empty directory; without privileges
func foundNone(r host.Result) bool {
	words := strings.TrimSuffix(string(r.Stderr), "\n")
	return len(r.Stdout) == 0 && (r.Exit == 1 && words == "" || r.Exit <= 1 && words == "no pools available to import")
}

// poolGUID is the identity of an imported pool; host.ErrNotFound if there is
// none of that name.
func poolGUID(ctx context.Context, h host.Host, pool string) (string, error) {
	c := poolCommand(pool)
	r, err := h.Run(ctx, c)
	switch {
	case err != nil:
		return "", err
	case r.Exit != 0:
		return "", failure(c, r, pool)
	}
	return parseOnePool(r.Stdout, pool)
}

// isPool says whether the imported pool of that name is the one meant; an empty
// guid is any.
func isPool(ctx context.Context, h host.Host, pool, guid string) error {
	is, err := poolGUID(ctx, h, pool)
	if err == nil && guid != "" && is != guid {
		err = &OtherError{Name: pool, Is: is, Want: guid}
	}
	return err
}

func isKind(err error, kinds ...error) bool {
	for _, k := range kinds {
		if errors.Is(err, k) {
			return true
		}
	}
	return false
}

// poolColumns are those of a pool's line. The lines of its devices have columns
// of their own, whatever is asked for.
const poolColumns = "name,size,allocated,free,health,guid,failmode"

// poolsCommand lists all pools with their devices. -P is full paths: without it
// a file and a disk of one name look the same.
func poolsCommand() host.Command {
	return host.Command{Program: "zpool", Args: []string{"list", "-HpvP", "-o", poolColumns}, ReadOnly: true}
}

// plainPoolsCommand lists all pools where zpool cannot do that, and statusCommand
// their devices.
func plainPoolsCommand() host.Command {
	return host.Command{Program: "zpool", Args: []string{"list", "-H", "-o", "name,guid,health,failmode"}, ReadOnly: true}
}

func statusCommand() host.Command {
	return host.Command{Program: "zpool", Args: []string{"status"}, ReadOnly: true}
}

// poolCommand looks at one pool, on any implementation.
func poolCommand(pool string) host.Command {
	return host.Command{Program: "zpool", Args: []string{"list", "-H", "-o", "name,guid", pool}, ReadOnly: true}
}

// importableCommand looks for pools on the devices of a directory, or on all.
func importableCommand(dir string) host.Command {
	return host.Command{Program: "zpool", Args: append([]string{"import"}, searched(dir)...), ReadOnly: true}
}

func searched(dir string) []string {
	if dir == "" {
		return nil
	}
	return []string{"-d", dir}
}

func createPoolCommand(pool, device string, properties []Property) host.Command {
	return host.Command{Program: "zpool", Args: slices.Concat([]string{"create"}, options(properties), []string{pool, device})}
}

func setPoolCommand(pool string, p Property) host.Command {
	return host.Command{Program: "zpool", Args: []string{"set", p.Name + "=" + p.Value, pool}}
}

func importCommand(pool, dir string, force bool) host.Command {
	args := []string{"import"}
	if force {
		args = append(args, "-f")
	}
	return host.Command{Program: "zpool", Args: append(append(args, searched(dir)...), pool)}
}

func exportCommand(pool string) host.Command {
	return host.Command{Program: "zpool", Args: []string{"export", pool}}
}
