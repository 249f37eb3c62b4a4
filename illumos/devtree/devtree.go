// Package devtree reads the device tree of an illumos host, which names its hardware: the
// machine, its disks, and how they are attached (prtconf(8)).
package devtree

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/sledctl/sledctl/host"
)

// ErrSyntax is output that prtconf does not print.
var ErrSyntax = errors.New("not in the form of prtconf")

// Prefetch asks for the tree once, and gives a host on which Query answers from that: it is the
// longest listing of all. Errors: those of Query.
func Prefetch(ctx context.Context, h host.Host) (host.Host, error) {
	nodes, err := Query(ctx, h)
	if err != nil {
		return nil, err
	}
	h = host.Remembering(h)
	host.Remember(h, prefetchKey{}, nodes)
	return h, nil
}

// prefetchKey is where a host remembers its tree.
type prefetchKey struct{}

// Query asks for the tree; the first node is the root. Errors: ErrSyntax, a
// *host.CommandError.
func Query(ctx context.Context, h host.Host) ([]*Node, error) {
	if nodes, known := host.Recall[[]*Node](h, prefetchKey{}); known {
		return nodes, nil
	}
	c := command()
	r, err := h.Run(ctx, c)
	if err == nil && r.Exit != 0 {
		err = &host.CommandError{Command: c, Result: r}
	}
	if err != nil {
		return nil, err
	}
	nodes, err := Parse(r.Stdout)
	if words := strings.TrimSpace(string(r.Stderr)); err != nil && words != "" {
		err = fmt.Errorf("%s: %w", words, err)
	}
	return nodes, err
}

// Node is a node of the device tree.
type Node struct {
	Name, Driver string
	Properties   map[string]string // as printed
	Links        []string          // below /dev
	Parent       *Node             // nil: it is the root
}

// Text is a property that is one string.
func (n *Node) Text(property string) (string, error) {
	value, there := n.Properties[property]
	inner, opens := strings.CutPrefix(value, "'")
	inner, closes := strings.CutSuffix(inner, "'")
	switch {
	case !there:
		return "", fmt.Errorf("%s has no %s: %w", n.Name, property, ErrSyntax)
	case !opens || !closes || strings.Contains(inner, "' + '"):
		return "", fmt.Errorf("%s of %s: %s is no string: %w", property, n.Name, value, ErrSyntax)
	}
	return inner, nil
}

// Number is a property that is one integer, which is printed in hexadecimal.
func (n *Node) Number(property string) (uint64, error) {
	if n == nil {
		return 0, fmt.Errorf("no node for %s: %w", property, ErrSyntax)
	}
	value, there := n.Properties[property]
	if !there {
		return 0, fmt.Errorf("%s has no %s: %w", n.Name, property, ErrSyntax)
	}
	number, err := strconv.ParseUint(value, 16, 64)
	if err != nil {
		return 0, fmt.Errorf("%s of %s: %s is no integer: %w", property, n.Name, value, ErrSyntax)
	}
	return number, nil
}

// Above is the parent, if it has the driver.
func (n *Node) Above(driver string) *Node {
	if n == nil || n.Parent == nil || n.Parent.Driver != driver {
		return nil
	}
	return n.Parent
}
