package console

// escapes picks the escape sequences out of what is typed, as zlogin(1) and
// ssh(1) do: the character counts at the beginning of a line only, and twice it
// stands for itself.
type escapes struct {
	char  byte // 0: there are none
	after after
}

// after is what was typed last.
type after int

const (
	afterLine after = iota // the end of a line, or nothing yet
	afterText
	afterEscape
)

// act is what a sequence asks for.
type act int

const (
	actNone act = iota
	actLeave
	actHelp
)

// feed gives what is to be sent of the input, up to a sequence that asks for
// something, and the input behind it.
func (e *escapes) feed(input []byte) (send []byte, asks act, rest []byte) {
	if e.char == 0 {
		return input, actNone, nil
	}
	for i, b := range input {
		switch was := e.after; {
		case was == afterEscape && b == '.':
			e.after = afterLine
			return send, actLeave, input[i+1:]
		case was == afterEscape && b == '?':
			e.after = afterLine
			return send, actHelp, input[i+1:]
		case was == afterEscape && b != e.char:
			send = append(send, e.char)
		case was == afterLine && b == e.char:
			e.after = afterEscape
			continue
		}
		send = append(send, b)
		e.after = afterText
		if b == '\r' || b == '\n' {
			e.after = afterLine
		}
	}
	return send, actNone, nil
}
