package zonecfg

// value reads a simple value, a complex one or a list. The names of resources and
// properties are simple values too (simple_prop_val).
func (p *cfgParser) value() (cfgValue, bool) {
	for _, kind := range []string{cfgText, cfgWord} {
		if text, ok := p.accept(kind); ok {
			return cfgValue{kind: "simple", text: text}, true
		}
	}
	if _, ok := p.accept("("); ok {
		return p.complexValue()
	}
	if _, ok := p.accept("["); !ok {
		return cfgValue{}, false
	}
	v := cfgValue{kind: "list"}
	if _, ok := p.accept("]"); ok {
		return v, true
	}
	for {
		piece, ok := p.value()
		if !ok || piece.kind == "list" {
			return v, false
		}
		v.list = append(v.list, piece)
		if _, ok := p.accept("]"); ok {
			return v, true
		}
		if _, ok := p.accept(","); !ok {
			return v, false
		}
	}
}

func (p *cfgParser) complexValue() (cfgValue, bool) {
	v := cfgValue{kind: "complex"}
	for {
		name, ok := p.propertyName()
		if !ok {
			return v, false
		}
		if _, ok := p.accept("="); !ok {
			return v, false
		}
		text, ok := p.accept(cfgText)
		if !ok {
			return v, false
		}
		v.pair = append(v.pair, cfgProperty{name, cfgValue{kind: "simple", text: text}})
		if _, ok := p.accept(")"); ok {
			return v, true
		}
		if _, ok := p.accept(","); !ok {
			return v, false
		}
	}
}
