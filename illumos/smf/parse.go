package smf

import (
	"errors"
	"fmt"
	"strings"
)

// ErrSyntax is output that is not of the form that a command is known to print.
var ErrSyntax = errors.New("unexpected output")

// ParseList reads svcs -H -o state,fmri, with any further columns: fields
// between blanks, the state with an asterisk while in transition. An
// unknown state is returned as it is: callers that wait for a state compare it.
func ParseList(out []byte) ([]Service, error) {
	var services []Service
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		if len(fields) < 2 || !strings.HasPrefix(fields[1], "svc:/") && !strings.HasPrefix(fields[1], "lrc:/") {
			return nil, fmt.Errorf("svcs line %q: %w", strings.TrimSuffix(line, "\n"), ErrSyntax)
		}
		state, moving := strings.CutSuffix(fields[0], "*")
		services = append(services, Service{FMRI: fields[1], State: state, Moving: moving})
	}
	return services, nil
}

// ParseState reads svcprop -p restarter/state, also with -t: the value is the
// last word of the only line.
func ParseState(out []byte) (string, error) {
	text, ended := strings.CutSuffix(string(out), "\n")
	fields := strings.Fields(text)
	plain := len(fields) == 1
	typed := len(fields) == 3 && fields[0] == "restarter/state" && fields[1] == "astring"
	if !ended || strings.Contains(text, "\n") || !plain && !typed {
		return "", fmt.Errorf("svcprop printed %q: %w", out, ErrSyntax)
	}
	return fields[len(fields)-1], nil
}
