package opte

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
)

// ErrSyntax is output that opteadm of this version does not print.
var ErrSyntax = errors.New("not opteadm's output")

// ParseVersion reads opteadm --version. The error is ErrSyntax, or a *VersionError.
func ParseVersion(out []byte) error {
	version, ok := strings.CutPrefix(string(out), "opteadm ")
	version, ended := strings.CutSuffix(version, "\n")
	if !ok || !ended || strings.ContainsAny(version, " \n") {
		return fmt.Errorf("%q: %w", out, ErrSyntax)
	}
	return known(version)
}

// grid is a table whose columns begin where those of its first line do. Opteadm aligns tables
// with blanks, at least two between columns, and a cell may be empty.
type grid struct{ starts []int }

// header reads the first line, which must have exactly these columns.
func header(line string, columns ...string) (grid, error) {
	var g grid
	at := 0
	for i, column := range columns {
		rest := []rune(line)[min(at, len([]rune(line))):]
		if !strings.HasPrefix(string(rest), column) {
			return grid{}, fmt.Errorf("table %q, not with columns %s: %w", line, strings.Join(columns, ", "), ErrSyntax)
		}
		g.starts = append(g.starts, at)
		at += len([]rune(column))
		blanks := len(rest) - len([]rune(column)) - len([]rune(strings.TrimLeft(string(rest)[len(column):], " ")))
		if at += blanks; i < len(columns)-1 && blanks < 2 || i == len(columns)-1 && at != len([]rune(line)) {
			return grid{}, fmt.Errorf("table %q, not with columns %s: %w", line, strings.Join(columns, ", "), ErrSyntax)
		}
	}
	return g, nil
}

// cells cuts a line where the columns begin.
func (g grid) cells(line string) ([]string, error) {
	text := []rune(line)
	cells := make([]string, len(g.starts))
	for i, from := range g.starts {
		to := len(text)
		if i+1 < len(g.starts) {
			to = min(g.starts[i+1], len(text))
		}
		if from > to {
			continue
		}
		if from > 0 && text[from-1] != ' ' {
			return nil, fmt.Errorf("row %q runs over its columns: %w", line, ErrSyntax)
		}
		cell := strings.TrimRight(string(text[from:to]), " ")
		if strings.HasPrefix(cell, " ") {
			return nil, fmt.Errorf("row %q begins a cell with a blank: %w", line, ErrSyntax)
		}
		cells[i] = cell
	}
	return cells, nil
}

// linesOf are the lines of an output, which must end with a newline.
func linesOf(out []byte) ([]string, error) {
	text, ended := strings.CutSuffix(string(out), "\n")
	if !ended {
		return nil, fmt.Errorf("output that does not end: %w", ErrSyntax)
	}
	return strings.Split(text, "\n"), nil
}

const none = "None"

// ParsePorts reads opteadm list-ports. Errors are ErrSyntax.
func ParsePorts(out []byte) ([]Listed, error) {
	lines, err := linesOf(out)
	if err != nil {
		return nil, err
	}
	g, err := header(lines[0], "LINK", "MAC ADDRESS", "IPv4 ADDRESS", "EPHEMERAL IPv4", "FLOATING IPv4", "IPv6 ADDRESS", "EXTERNAL IPv6", "FLOATING IPv6", "STATE")
	if err != nil {
		return nil, err
	}
	ports := []Listed{}
	for _, line := range lines[1:] {
		cells, err := g.cells(line)
		if err != nil {
			return nil, err
		}
		if cells[0] == "" { // more floating addresses of the port before
			if len(ports) == 0 {
				return nil, fmt.Errorf("row %q of no port: %w", line, ErrSyntax)
			}
			continue
		}
		p, err := listed(cells)
		if err != nil {
			return nil, err
		}
		ports = append(ports, p)
	}
	return ports, nil
}

func listed(cells []string) (Listed, error) {
	p := Listed{Name: cells[0], MAC: strings.ToLower(cells[1])}
	if !regexp.MustCompile(`^([0-9A-F]{2}:){5}[0-9A-F]{2}$`).MatchString(cells[1]) || strings.ContainsAny(p.Name, " \t") {
		return p, fmt.Errorf("port %q with the address %q: %w", cells[0], cells[1], ErrSyntax)
	}
	for _, cell := range []string{cells[2], cells[5]} {
		if cell == none {
			continue
		}
		ip, err := netip.ParseAddr(cell)
		if err != nil {
			return p, fmt.Errorf("port %q with the address %q: %w", cells[0], cell, ErrSyntax)
		}
		p.IPs = append(p.IPs, ip)
	}
	return p, nil
}

// Row is a rule of a layer of a port as opteadm shows it.
type Row struct {
	In         bool
	Priority   int
	Predicates []string
	Action     string
}

// key is the row to be compared.
func (r Row) key() string {
	return fmt.Sprintf("%v %d %q %s", r.In, r.Priority, r.Predicates, r.Action)
}

// ParseLayer reads opteadm dump-layer of a port. Errors are ErrSyntax.
func ParseLayer(out []byte, port, layer string) ([]Row, error) {
	lines, err := linesOf(out)
	if err != nil {
		return nil, err
	}
	if lines[0] != "Port "+port+" - Layer "+layer {
		return nil, fmt.Errorf("layer %q: %w", lines[0], ErrSyntax)
	}
	var all []Row
	found := 0
	for i, line := range lines {
		if line != "Inbound Rules" && line != "Outbound Rules" {
			continue
		}
		rows, err := rowsOf(lines[i+1:], line == "Inbound Rules")
		if err != nil {
			return nil, err
		}
		found++
		all = append(all, rows...)
	}
	if found != 2 {
		return nil, fmt.Errorf("layer %s without its rules: %w", layer, ErrSyntax)
	}
	return all, nil
}

// rowsOf reads the rules behind a heading, up to the default.
func rowsOf(lines []string, in bool) ([]Row, error) {
	cut := fmt.Errorf("rules without a default: %w", ErrSyntax)
	if len(lines) < 2 || strings.Trim(lines[0], "-") != "" {
		return nil, cut
	}
	g, err := header(lines[1], "ID", "PRI", "HITS", "PREDICATES", "ACTION")
	if err != nil {
		return nil, err
	}
	var rows []Row
	for _, line := range lines[2:] {
		cells, err := g.cells(line)
		if err != nil {
			return nil, err
		}
		switch {
		case cells[0] == "DEF":
			return rows, nil
		case cells[0] != "":
			row, err := rowOf(cells, in)
			if err != nil {
				return nil, err
			}
			rows = append(rows, row)
		case len(rows) == 0:
			return nil, fmt.Errorf("row %q of no rule: %w", line, ErrSyntax)
		case cells[3] != "":
			rows[len(rows)-1].Predicates = append(rows[len(rows)-1].Predicates, cells[3])
		}
	}
	return nil, cut
}

func rowOf(cells []string, in bool) (Row, error) {
	priority, err := strconv.ParseUint(cells[1], 10, 16)
	action, failed := strconv.Unquote(cells[4])
	if err != nil || failed != nil || cells[3] == "" {
		return Row{}, fmt.Errorf("rule %q: %w", cells, ErrSyntax)
	}
	row := Row{In: in, Priority: int(priority), Action: action}
	if cells[3] != "*" {
		row.Predicates = []string{cells[3]}
	}
	return row, nil
}
