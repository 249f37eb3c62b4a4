package top

import (
	"slices"
	"strings"
)

// page is text that is looked through.
type page struct {
	title string
	words []string // of the command that printed it; nil: it does not change
	lines []string
	raw   []string // what lines are made of, where they are wrapped here
	first int      // that is seen
	moved bool     // away from the end, where it is else kept
	begin bool     // it is read from its beginning
	items []item   // what can be opened in it
	at    int      // the item that the cursor is on
}

// opening is the page of a command that is about to be looked at. A log, and what was done, is
// read from its end.
func opening(words []string) *page {
	tail := words[0] == "events" || slices.Contains(words, "logs")
	return &page{title: strings.Join(words, " "), words: words, lines: []string{"looking"}, begin: !tail}
}

// item is something that a page shows, and that can be opened.
type item struct {
	line int      // of the page, where it begins
	open []string // the command that shows it
}

// take has the page show what was looked at. The cursor stays on its item.
func (p *page) take(lines []string, items []item) {
	was := slices.IndexFunc(items, func(i item) bool { return p.at < len(p.items) && slices.Equal(i.open, p.items[p.at].open) })
	p.lines, p.items = lines, items
	switch last := max(0, len(items)-1); {
	case !p.begin && !p.moved:
		p.at = last
	case was >= 0:
		p.at = was
	default:
		p.at = min(p.at, last)
	}
}

// move is a key that moves in it, in a room of so many lines.
func (p *page) move(key string, room int) {
	if len(p.items) > 0 {
		last := len(p.items) - 1
		p.at = moved(p.at, key, last, max(1, room/2))
		p.moved = p.at < last
		return
	}
	last := max(0, len(p.lines)-room)
	p.first = moved(p.first, key, last, room)
	p.moved = p.first < last
}

// seen are the lines of the page that there is room for.
func (p *page) seen(room int) []string {
	last := max(0, len(p.lines)-room)
	if p.first = min(p.first, last); len(p.items) == 0 {
		if !p.begin && !p.moved {
			p.first = last
		}
		return p.lines[p.first:min(len(p.lines), p.first+room)]
	}
	begin, end := p.items[p.at].line, len(p.lines)
	if p.at+1 < len(p.items) {
		end = p.items[p.at+1].line
	}
	if p.at == 0 {
		begin = 0 // with the head
	}
	p.first = min(max(p.first, end-room), begin)
	var lines []string
	for n, line := range p.lines[p.first:min(len(p.lines), p.first+room)] {
		sign := " "
		if p.first+n == p.items[p.at].line {
			sign = ">"
		}
		lines = append(lines, sign+line)
	}
	return lines
}

// moved is a place after a key that moves, from 0 to last.
func moved(at int, key string, last, screenful int) int {
	switch key {
	case "up", "k":
		at--
	case "down", "j":
		at++
	case "pgup":
		at -= screenful
	case "pgdn":
		at += screenful
	case "g", "home":
		at = 0
	case "G", "end":
		at = last
	}
	return max(0, min(at, last))
}
