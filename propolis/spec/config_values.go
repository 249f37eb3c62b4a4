package spec

import (
	"fmt"
	"strconv"
)

// readOnly also honours the spelling of propolis-standalone: its author does not want
// the disk written to.
func (c *config) readOnly(path string, table map[string]any) bool {
	truth := func(key string) (value, there bool) {
		v, there := table[key]
		switch v {
		case true, "true":
			return true, true
		case false, "false":
			return false, true
		}
		if there {
			c.wrong(join(path, key), v, "true or false")
		}
		return false, there
	}
	value, said := truth("readonly")
	other, there := truth("read_only")
	switch {
	case there && said && other != value:
		c.add(path+".read_only", "is not what readonly says")
	case there && !said:
		c.warn(path+".read_only", "is read as readonly, which propolis-cli does not do: there the disk would be writable")
		return other
	}
	return value
}

// missing reports a key that is missing; one that is there and wrong has been reported
// before.
func (c *config) missing(path string, table map[string]any, key string) {
	if _, there := table[key]; !there {
		c.add(path, "%s is missing", key)
	}
}

func (c *config) required(path string, table map[string]any, key string) string {
	c.missing(path, table, key)
	s, _ := c.text(path, table, key)
	return s
}

func (c *config) text(path string, table map[string]any, key string) (s string, there bool) {
	v, there := table[key]
	if !there {
		return "", false
	}
	s, ok := v.(string)
	if !ok {
		c.wrong(join(path, key), v, "a text")
	}
	return s, ok
}

func (c *config) number(path string, table map[string]any, key string, least, most uint64) (n uint64, there bool) {
	v, there := table[key]
	if !there {
		return 0, false
	}
	i, ok := v.(int64)
	if !ok || i < 0 || uint64(i) < least || uint64(i) > most {
		c.wrong(join(path, key), v, fmt.Sprintf("a whole number from %d to %d", least, most))
		return 0, false
	}
	return uint64(i), true
}

// written reads a number that the crate wants in quotes. Without them it takes
// it as not said.
func (c *config) written(path string, table map[string]any, key string, bits int) (n uint64, there bool) {
	v, there := table[key]
	if !there {
		return 0, false
	}
	text, quoted := v.(string)
	if i, ok := v.(int64); ok {
		c.warn(join(path, key), "is read, which propolis-cli does not do without quotes")
		text, quoted = strconv.FormatInt(i, 10), true
	}
	n, err := strconv.ParseUint(text, 10, bits)
	if !quoted || err != nil {
		c.wrong(join(path, key), v, fmt.Sprintf("a whole number from 0 to %d", uint64(1)<<bits-1))
		return 0, false
	}
	return n, true
}
